// Shows the verdict in the page's title, which can be seen while the page is not.

const title = document.title;
const said = { safe: "Safe to install", refused: "Do not install", unknown: "Not checked", checking: "Checking …" };

function show({ target: { reports = [] } }) {
  const safe = reports.filter(({ ok }) => ok).length;
  const isChecking = reports.some(({ state }) => state === "checking");
  if (reports.length === 0) document.title = title;
  else if (reports.length === 1) document.title = `${said[reports[0].state]}: ${reports[0].file}`;
  else document.title = isChecking ? `Checking ${reports.length} bundles …` : `${safe} of ${reports.length} bundles safe to install`;
}

for (const type of ["start", "verdict", "reset"]) document.addEventListener(`sealift-${type}`, show);
