// The element alone in a form, and everything that it tells.

/** Replaces the page's element by one with these attributes, unless they say otherwise in full. What it tells is kept in `window.told`. `files` are the bundles that can be chosen, by name. */
export async function gate(page, files, attributes = {}) {
  await page.evaluate((attributes) => {
    window.told = [];
    const form = document.createElement("form");
    const element = document.createElement("sealift-verifier");
    for (const [name, value] of Object.entries({ name: "bundle", variant: "full", ...attributes })) if (value !== null) element.setAttribute(name, value);
    for (const type of ["start", "progress", "verdict", "reset"]) element.addEventListener(`sealift-${type}`, ({ detail }) => window.told.push({ type, detail }));
    form.append(element);
    document.querySelector("main").replaceChildren(form);
  }, attributes);
  const element = page.locator("sealift-verifier");
  return {
    element,
    choose: (name) => page.locator("#file").setInputFiles(files[name]),
    set: (name, value) => element.evaluate((element, [name, value]) => (value === null ? element.removeAttribute(name) : element.setAttribute(name, value)), [name, value]),
    /** Everything that can say that the bundle is good, at one moment. */
    all: () => element.evaluate((element) => {
      const banner = element.shadowRoot.querySelector(".view:not([hidden]) .banner");
      const last = window.told.filter(({ type }) => type === "verdict").at(-1)?.detail;
      const carried = new FormData(element.form).get("bundle");
      return {
        banner: banner?.classList.contains("good") ?? false, event: last?.ok, report: last?.report ? last.report.ok && last.report.sound && last.report.trusted : false,
        ok: element.ok, valid: element.checkValidity(), carried: carried instanceof File ? carried.name : carried, state: element.finding.state,
      };
    }),
    /** Waits for a state; a file that is safe has its SHA-256 then, without which a form does not take it. */
    settled: (state) => page.waitForFunction((state) => {
      const { finding, reports } = document.querySelector("sealift-verifier");
      return finding.state === state && (state !== "safe" || reports.every(({ sha256, ok }) => !ok || sha256 !== undefined));
    }, state),
    told: () => page.evaluate(() => window.told.map(({ type, detail }) => (type === "verdict" ? `verdict ${detail.state}` : type))),
  };
}
