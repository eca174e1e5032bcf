//! The picture of a simulation: an HTML page with SVG and without scripts, which is also well-formed XML.

use std::fmt::{self, Write as _};

use super::device::SimulatedDevice;
use super::run::{Run, real};
use super::{Simulation, Stroke};
use crate::Error;
use crate::output::Output;

const WIDTH: f64 = 1180.0;
/// Widths of the time axis and of a panel, and the distance between the left edges of two panels.
const LEFT: f64 = 74.0;
const PANEL: f64 = 256.0;
const STEP: f64 = 276.0;
/// Heights of the names above the panels, of the panels, and of the axis below them.
const ABOVE: f64 = 62.0;
const HEIGHT: f64 = 420.0;
const BELOW: f64 = 34.0;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1b1f24; --dim: #5b6570; --page: #fff; --panel: #f3f5f7; --busy: #dbe7f5; --read: #0b57a4; --seek: #c2571a }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e9ec; --dim: #a3adb7; --page: #15181b; --panel: #1f2428; --busy: #24364a; --read: #7fb8f5; --seek: #f0955a }
}
body { margin: 1.5rem auto; max-width: 75rem; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; color: var(--text); background: var(--page) }
figure { margin: 1.5rem 0; overflow-x: auto }
figcaption { font-weight: 600 }
svg { display: block; width: 100%; min-width: 60rem; height: auto }
svg text { font: 15px system-ui, sans-serif; fill: var(--text) }
svg .name { font-size: 17px; font-weight: 600 }
svg .dim { fill: var(--dim) }
svg .panel { fill: var(--panel) }
svg .busy { fill: var(--busy) }
svg .read { fill: none; stroke: var(--read); stroke-width: 4; stroke-linecap: round }
svg .seek { fill: none; stroke: var(--seek); stroke-width: 1 }
svg .grid { stroke: var(--dim); stroke-width: 1; stroke-opacity: 0.3 }
.key { display: inline-block; width: 1.5rem; vertical-align: middle; border-top: 4px solid var(--read) }
.key.seeks { border-top: 1px solid var(--seek) }
table { border-collapse: collapse }
th, td { padding: 0.15rem 1.25rem 0.15rem 0; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
";

/// Writes a page with the simulations of one device, each with its title: each order has a panel, in which time runs down and the offset from left
/// to right.
pub fn write_picture(
    output: &Output,
    device: &SimulatedDevice,
    simulations: &[(String, &Simulation)],
) -> Result<(), Error> {
    output.write(page(device, simulations).as_bytes())
}

fn page(device: &SimulatedDevice, simulations: &[(String, &Simulation)]) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write_page(&mut page, device, simulations);
    page
}

fn write_page(page: &mut String, device: &SimulatedDevice, simulations: &[(String, &Simulation)]) -> fmt::Result {
    let kind = device.kind();
    write!(
        page,
        "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
        <meta name=\"viewport\" content=\"width=device-width\"/>\n<title>Reading from {kind}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
        <h1>Reading from {kind}</h1>\n<p>Time runs down, and the offset in the bundle’s file from left to right: \
        <span class=\"key\"></span> reads, <span class=\"key seeks\"></span> seeks.</p>\n"
    )?;
    let runs = simulations.iter().flat_map(|(_, simulation)| simulation.orders());
    let slowest = runs.map(|(_, run)| run.seconds).fold(0.0, f64::max);
    for (title, simulation) in simulations {
        write_figure(page, &escaped(title), simulation, slowest)?;
    }
    page.push_str(
        "<h2>The device</h2>\n<table>\n<tr><th>parameter</th><th>value</th><th>unit</th><th>source</th></tr>\n",
    );
    for parameter in device.parameters() {
        let (name, value, unit, source) = (parameter.name, parameter.value, parameter.unit, escaped(parameter.source));
        writeln!(page, "<tr><td>{name}</td><td class=\"number\">{value}</td><td>{unit}</td><td>{source}</td></tr>")?;
    }
    page.push_str("</table>\n</body>\n</html>\n");
    Ok(())
}

fn write_figure(page: &mut String, title: &str, simulation: &Simulation, slowest: f64) -> fmt::Result {
    let orders = simulation.orders();
    let ends = orders.iter().flat_map(|(_, run)| run.strokes.iter().map(|stroke| stroke.range.end));
    let scale =
        Scale { bytes: real(ends.max().unwrap_or(1).max(simulation.file_bytes).max(1)), seconds: slowest.max(1e-9) };
    let (paths, matched) = (simulation.paths, simulation.matched);
    let height = ABOVE + HEIGHT + BELOW;
    write!(
        page,
        "<figure>\n<figcaption>{title}: {matched} of the {paths} paths in the profile</figcaption>\n\
        <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"offset over time\">\n"
    )?;
    let bottom = ABOVE + HEIGHT;
    for (at, (name, run)) in (0u8..).zip(orders) {
        write_panel(page, LEFT + STEP * f64::from(at), name, run, scale)?;
    }
    let (tick, places) = tick(scale.seconds);
    for number in 0u8..=20 {
        let seconds = tick * f64::from(number);
        if seconds > scale.seconds {
            break;
        }
        let (y, right) = (scale.y(seconds), LEFT + STEP * 3.0 + PANEL);
        writeln!(page, "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>")?;
        let (x, y) = (LEFT - 8.0, y + 5.0);
        writeln!(page, "<text class=\"dim\" x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{seconds:.places$} s</text>")?;
    }
    let (y, megabytes) = (bottom + 22.0, scale.bytes / 1e6);
    writeln!(page, "<text class=\"dim\" x=\"{LEFT}\" y=\"{y}\">0</text>")?;
    for at in 0u8..4 {
        let right = LEFT + STEP * f64::from(at) + PANEL;
        writeln!(page, "<text class=\"dim\" x=\"{right}\" y=\"{y}\" text-anchor=\"end\">{megabytes:.1} MB</text>")?;
    }
    page.push_str("</svg>\n</figure>\n");
    Ok(())
}

fn write_panel(page: &mut String, x: f64, name: &str, run: &Run, scale: Scale) -> fmt::Result {
    let (seconds, seeks, megabytes) = (run.seconds, run.seeks, real(run.bytes) / 1e6);
    writeln!(page, "<text class=\"name\" x=\"{x}\" y=\"22\">{name}: {seconds:.2} s</text>")?;
    writeln!(page, "<text class=\"dim\" x=\"{x}\" y=\"46\">{seeks} seeks, {megabytes:.2} MB read</text>")?;
    writeln!(page, "<rect class=\"panel\" x=\"{x}\" y=\"{ABOVE}\" width=\"{PANEL}\" height=\"{HEIGHT}\"/>")?;
    let busy = scale.y(seconds) - ABOVE;
    writeln!(page, "<rect class=\"busy\" x=\"{x}\" y=\"{ABOVE}\" width=\"{PANEL}\" height=\"{busy:.1}\"/>")?;
    page.push_str("<path class=\"seek\" d=\"");
    for pair in run.strokes.windows(2) {
        let [before, after] = pair else { continue };
        write!(
            page,
            "M{}L{}",
            scale.point(x, before.range.end, after.left),
            scale.point(x, after.range.start, after.start)
        )?;
    }
    page.push_str("\"/>\n<path class=\"read\" d=\"");
    for Stroke { range, start, end, .. } in &run.strokes {
        write!(page, "M{}L{}", scale.point(x, range.start, *start), scale.point(x, range.end, *end))?;
    }
    page.push_str("\"/>\n");
    Ok(())
}

/// The largest offset and time in the panels.
#[derive(Clone, Copy)]
struct Scale {
    bytes: f64,
    seconds: f64,
}

impl Scale {
    fn y(self, seconds: f64) -> f64 {
        ABOVE + HEIGHT * seconds / self.seconds
    }

    fn point(self, x: f64, place: u64, seconds: f64) -> String {
        format!("{:.1} {:.1}", x + PANEL * real(place) / self.bytes, self.y(seconds))
    }
}

/// Returns the distance between the marks on an axis, of which there are 4 to 10, and the decimal places that they need.
fn tick(most: f64) -> (f64, usize) {
    let units = (-6i32..=15).map(|power| (10f64.powi(power), usize::try_from(-power).unwrap_or(0)));
    let mut ticks = units.flat_map(|(unit, places)| [unit, unit * 2.0, unit * 5.0].map(|tick| (tick, places)));
    ticks.find(|(tick, _)| most / tick <= 10.0).unwrap_or((most, 0))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_few_marks() {
        assert_eq!(tick(40.0), (5.0, 0));
        assert_eq!(tick(3.2), (0.5, 1));
        assert_eq!(tick(0.04), (0.005, 3));
        assert_eq!(tick(1e9), (1e8, 0));
    }
}
