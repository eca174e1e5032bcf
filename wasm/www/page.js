// The page's title says what its element found: it is seen where the page is not.

const title = document.title;
const said = { safe: "Safe to install", refused: "Do not install", unknown: "Not checked", checking: "Checking …" };
const show = (state, name) => (document.title = state in said ? `${said[state]}: ${name}` : title);

document.addEventListener("sealift-start", ({ detail }) => show("checking", detail.name));
document.addEventListener("sealift-verdict", ({ detail }) => show(detail.state, detail.name));
document.addEventListener("sealift-reset", () => show("empty"));
