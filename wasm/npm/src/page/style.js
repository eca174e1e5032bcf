// The element's style. A constructed style sheet needs no exception in a page's security policy. It is dark where the page is: by the page's own
// color-scheme, and not by what the person prefers elsewhere.

/** @type {CSSStyleSheet | undefined} */
let made;

export function sheet() {
  if (!made) {
    made = new CSSStyleSheet();
    made.replaceSync(STYLE);
  }
  return made;
}

const STYLE = `
:host {
  --text: light-dark(#1b1f24, #e6edf3); --quiet: light-dark(#57606a, #9da7b1); --page: light-dark(#ffffff, #0d1117); --panel: light-dark(#f6f8fa, #161b22); --line: light-dark(#d0d7de, #3d444d); --link: light-dark(#0a56b8, #79b8ff);
  --good: light-dark(#116329, #56d364); --good-page: light-dark(#dafbe1, #0f2a17); --bad: light-dark(#a40e26, #ff8f87); --bad-page: light-dark(#ffebe9, #3a1214); --doubt: light-dark(#7d4e00, #e3b341); --doubt-page: light-dark(#fff4ce, #2e2408); --work: light-dark(#0a56b8, #79b8ff); --work-page: light-dark(#ddf0ff, #0c2440);
  --hot: light-dark(#c2410c, #fb923c); --small: light-dark(#2563eb, #60a5fa); --large: light-dark(#6d28d9, #a78bfa); --shared: light-dark(#0f766e, #2dd4bf);
  display: block; color: var(--text); background: var(--page); font: 16px/1.5 system-ui, sans-serif; container-type: inline-size;
}
@media print { :host { color-scheme: light; } }
* { box-sizing: border-box; }
[hidden] { display: none !important; }
h2 { font-size: 1.125rem; margin: 0; line-height: 1.3; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
p { margin: .4rem 0; }
bdi { overflow-wrap: anywhere; }
.quiet { color: var(--quiet); font-size: .9rem; }
.fault { color: var(--bad); }
.fault:empty { display: none; }
.key { font: .85rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.icon { width: 1.25em; height: 1.25em; flex: none; vertical-align: text-bottom; display: inline-block; }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }

button, .button { font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--quiet); border-radius: 6px; padding: .35rem .8rem; cursor: pointer; display: inline-block; }
button:hover, .button:hover { border-color: var(--text); }
button.link { border: 0; padding: 0; min-height: 24px; color: var(--link); text-decoration: underline; background: none; font-size: inherit; }
input, textarea { font: inherit; color: var(--text); background: var(--page); border: 1px solid var(--quiet); border-radius: 6px; padding: .35rem .6rem; max-width: 100%; }
textarea { width: 100%; font: .85rem/1.4 ui-monospace, monospace; resize: vertical; }
input[type=file] { border: 0; padding: 0; }
.choose { position: relative; }
.choose input[type=file], .panel #older, .panel #base { position: absolute; opacity: 0; width: 1px; height: 1px; }
.choose input[type=file]:focus-visible, #older:focus-visible, #base:focus-visible { outline: none; }
.choose:focus-within .button, p:focus-within > .button { outline: 3px solid var(--link); outline-offset: 2px; }
::placeholder { color: var(--quiet); opacity: 1; }

.drop { border: 2px dashed var(--quiet); border-radius: 10px; padding: 1.25rem; display: grid; grid-template-columns: minmax(0, 1fr); gap: .8rem; }
.drop.over { border-color: var(--link); background: var(--work-page); }
.drop .choose { display: flex; align-items: center; gap: .8rem; flex-wrap: wrap; position: relative; }
.drop .button { background: var(--link); color: var(--page); border-color: var(--link); font-weight: 600; }
.drop form { display: flex; gap: .5rem; }
.drop form input { flex: 1; min-width: 0; }

.damage ul { margin: .2rem 0; padding-inline-start: 1.2rem; }
.banner { display: flex; gap: 1rem; border-radius: 10px; padding: 1rem 1.25rem; margin-top: 1rem; border: 1px solid; }
.banner .icon { width: 2.25rem; height: 2.25rem; }
.banner h2 { font-size: 1.35rem; }
.banner div { min-width: 0; }
.banner .quiet { color: inherit; }
.banner:focus:not(:focus-visible) { outline: none; }
.banner > div { flex: 1; }
.stranger { border-top: 1px solid var(--tone); margin-top: .6rem; padding-top: .4rem; }
.stranger .line { background: var(--page); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .6rem; user-select: all; }
.stranger .fields input { flex: 1 1 16rem; min-width: 0; }
.remove { align-self: flex-start; flex: none; }
.more > summary { margin-top: .4rem; color: var(--link); width: max-content; max-width: 100%; min-height: 24px; }
.first { border-inline-start: 4px solid var(--link); padding-inline-start: .8rem; }
.first:empty { display: none; }
.drop.compact { padding: .6rem .8rem; border-radius: 8px; }
.compact .banner { padding: .5rem .8rem; margin-top: .5rem; gap: .7rem; border-radius: 8px; }
.compact .banner .icon { width: 1.5rem; height: 1.5rem; }
.compact .banner h2 { font-size: 1.05rem; }
.compact .banner p { margin: .15rem 0; }
.compact .banner.good .why { display: none; }
.compact .more > summary { margin-top: .2rem; font-size: .9rem; }
.compact .progress { margin-top: .4rem; }
.notes:empty { display: none; }
.notes, .sum { margin-top: 1rem; }
.stranger button, .notes button, .panel p > .button { margin-block: .2rem; }
.list { list-style: none; margin: .4rem 0 0; padding: 0; display: grid; gap: .4rem; }
.list button { display: flex; gap: .8rem; width: 100%; text-align: start; align-items: center; border-color: var(--line); }
.list button[aria-current=true] { border-color: var(--tone); box-shadow: inset 4px 0 var(--tone); }
.list .icon { color: var(--tone); }
.list button span { display: grid; min-width: 0; overflow-wrap: anywhere; }
.old { --tone: var(--quiet); --tone-page: var(--panel); }
.good { --tone: var(--good); --tone-page: var(--good-page); }
.bad { --tone: var(--bad); --tone-page: var(--bad-page); }
.doubt { --tone: var(--doubt); --tone-page: var(--doubt-page); }
.work { --tone: var(--work); --tone-page: var(--work-page); }
.banner { color: var(--text); background: var(--tone-page); border-color: var(--tone); }
.banner .icon, .banner h2 { color: var(--tone); }

.wait:empty { display: none; }
.progress { display: flex; align-items: center; gap: .8rem; margin-top: .8rem; flex-wrap: wrap; }
progress { flex: 1 1 12rem; height: .8rem; accent-color: var(--link); }

.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem; margin-top: 1rem; }
summary { cursor: pointer; }
summary h2 { display: inline; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .25rem 1rem; margin: .6rem 0 0; }
dt { color: var(--quiet); overflow-wrap: anywhere; }
dd { margin: 0; }
.signers { list-style: none; margin: .6rem 0 0; padding: 0; display: grid; gap: .6rem; }
.signers li { display: flex; gap: .6rem; }
.signers li > div { min-width: 0; }
.signers .icon, .signers strong { color: var(--tone); }
.settings label { font-weight: 600; display: inline-block; margin-top: .6rem; }
.fields { display: flex; gap: 1rem; flex-wrap: wrap; }
.fields > div { flex: 1 1 14rem; display: grid; }

.files { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 1rem; margin-top: .6rem; }
.tree { display: grid; grid-template-rows: auto auto 1fr; gap: .3rem; min-width: 0; }
.rows { height: 22rem; overflow: auto; background: var(--page); border: 1px solid var(--line); border-radius: 6px; }
.space { position: relative; }
.row { position: absolute; inset-inline: 0; height: 28px; display: flex; align-items: center; gap: .8rem; padding: 0 .5rem; cursor: default; white-space: pre; }
.row:hover { background: var(--panel); }
.row[aria-selected=true] { background: var(--work-page); }
.row .name { flex: 1; min-width: 0; overflow: hidden; text-overflow: ellipsis; display: flex; align-items: center; gap: .2rem; }
.row .name bdi { overflow: hidden; text-overflow: ellipsis; overflow-wrap: normal; flex: 0 1 auto; }
.row .name bdi.quiet { flex-shrink: 3; }
.row .mode { font: .8rem ui-monospace, monospace; }
.size { font-variant-numeric: tabular-nums; text-align: end; font-size: .9rem; white-space: nowrap; }
.preview { min-width: 0; }
.preview h3 { margin-top: 0; }
pre { margin: .4rem 0; padding: .6rem; max-height: 16rem; overflow: auto; background: var(--page); border: 1px solid var(--line); border-radius: 6px; font: .8rem/1.45 ui-monospace, monospace; unicode-bidi: plaintext; }

.scroll { max-height: 24rem; overflow: auto; background: var(--page); border: 1px solid var(--line); border-radius: 6px; }
table { width: 100%; border-collapse: collapse; font-size: .9rem; }
th { position: sticky; top: 0; background: var(--panel); text-align: start; font-weight: 600; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
td:nth-child(2) { width: 100%; }

.bar { width: 100%; height: 2rem; display: block; border-radius: 6px; margin: .6rem 0; }
.hot { fill: var(--hot); } .small { fill: var(--small); } .large { fill: var(--large); } .shared { fill: var(--shared); }
.legend { list-style: none; padding: 0; margin: .4rem 0; display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; font-size: .9rem; }
.swatch { width: .8rem; height: .8rem; margin-inline-end: .4rem; }
.largest { margin: .2rem 0; padding-inline-start: 1.5rem; }

@media (forced-colors: active) {
  .row[aria-selected=true] { background: Highlight; color: HighlightText; forced-color-adjust: none; }
  .row[aria-selected=true] .quiet { color: inherit; }
  .list button[aria-current=true] { border: 3px solid Highlight; }
  .bar, .swatch { forced-color-adjust: none; }
  .banner { border-width: 3px; }
}
@media print {
  .drop, .notes, .progress, .settings, .stranger, .more > summary, .preview, .tree input, .rows, .panel p:has(#older, #base), .panel:has(#older):has(> [role=status]:empty), button { display: none !important; }
  .view[hidden] { display: block !important; }
  .more::details-content { content-visibility: visible; display: block; }
  .view:not(:first-child) { break-before: page; }
  .list button { display: flex !important; }
  .files { display: block; }
  .scroll { height: auto; max-height: none; overflow: visible; }
  .panel, .banner { break-inside: avoid; }
  .bar, .swatch { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
@container (max-width: 44rem) {
  .files { grid-template-columns: minmax(0, 1fr); }
  .rows { height: 16rem; }
  .row .mode { display: none; }
  .drop, .panel, .banner { padding: .9rem; }
  .wide { flex-basis: 100%; }
  .banner { flex-wrap: wrap; }
  .banner > div { flex-basis: 70%; }
  .remove { margin-inline-start: auto; }
  td.size { white-space: normal; }
  td:nth-child(2) { min-width: 6rem; overflow-wrap: anywhere; }
  th, td { padding: .25rem .3rem; }
  dl { grid-template-columns: minmax(0, 1fr); gap: 0; }
  dd { margin-bottom: .5rem; }
}
@container (max-width: 24rem) {
  pre.bytes { font-size: .56rem; padding: .4rem; }
}
`;
