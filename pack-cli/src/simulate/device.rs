//! The devices that are simulated: parameters, each with its unit and its source.

use crate::Error;

/// A number of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// Where the value comes from; `typical` if no document gives it.
    pub source: &'static str,
}

const COUNT: usize = 11;

/// Names and units of the parameters, in their order.
const NAMES: [(&str, &str); COUNT] = [
    ("capacity_bytes", "bytes"),
    ("place_bytes", "bytes"),
    ("start_rate", "bytes/s"),
    ("end_rate", "bytes/s"),
    ("short_seek_ms", "ms"),
    ("third_seek_ms", "ms"),
    ("full_seek_ms", "ms"),
    ("turn_ms", "ms"),
    ("request_ms", "ms"),
    ("read_ahead_bytes", "bytes"),
    ("block_bytes", "bytes"),
];

/// The maximum of each parameter, 2^53: above it, a float does not hold every whole number.
const MOST: f64 = 9_007_199_254_740_992.0;

const TYPICAL: &str = "typical";
const AT_THE_START: (f64, &str) = (0.0, "the bundle lies at the start of the device");
const READ_AHEAD: (f64, &str) = (131_072.0, "Linux: /sys/block/*/queue/read_ahead_kb is 128 by default");
const PAGE: (f64, &str) = (4096.0, "Linux: a page, which the page cache reads whole");

/// A 16x DVD-ROM drive with constant angular velocity, and a disc of one layer.
const DVD: [(f64, &str); COUNT] = [
    (
        4_695_853_056.0,
        "e-articles.info, DVD Tracks and Sectors: up to 2,292,897 sectors of 2048 bytes in a layer's data zone",
    ),
    AT_THE_START,
    // 22.16 MB/s * 24 mm / 58 mm
    (9_170_000.0, "end_rate, by the radii of the data zone: 24 to 58 mm (Upgrading and Repairing PCs)"),
    (22_160_000.0, "DVD FAQ 4.2: 1x is 11.08 Mbit/s, and the rating holds at the outer edge"),
    (20.0, TYPICAL),
    (100.0, "PC Hardware in a Nutshell: DVD drives, average seek, which is a third of the stroke"),
    (200.0, TYPICAL),
    // 251 km/h / 20 * 16 at 58 mm
    (6.53, "Upgrading and Repairing PCs: the outer edge moves at 251 km/h at 20x"),
    (0.3, TYPICAL),
    READ_AHEAD,
    (32_768.0, "opticaldisc-systems.com, DVD Basics: error correction is over blocks of 16 sectors"),
];

/// A 40x CD-ROM drive with constant angular velocity, and a disc of 74 minutes.
const CD: [(f64, &str); COUNT] = [
    (681_574_400.0, "Yamaha CRW2200S manual: 650 MB (74 min.)"),
    AT_THE_START,
    // 6.144 MB/s * 25 mm / 58 mm
    (2_648_000.0, "end_rate, by the radii of the program area: 25 to 58 mm (Wikipedia, Compact Disc)"),
    (6_144_000.0, "Yamaha CRW2200S manual: 40x (max.), full CAV; 1x is 150 KiB/s"),
    (20.0, TYPICAL),
    (85.0, "PC Hardware in a Nutshell: Plextor UltraPlex 40, average seek"),
    (170.0, TYPICAL),
    (7.0, "PC Hardware in a Nutshell: Plextor UltraPlex 40, 8590 rpm"),
    (0.3, TYPICAL),
    READ_AHEAD,
    PAGE,
];

/// A 2.5-inch disk of 5400 rpm.
const HDD: [(f64, &str); COUNT] = [
    (320_000_000_000.0, "Hitachi 5K320 SATA OEM specification"),
    AT_THE_START,
    (64_800_000.0, "Hitachi Deskstar 7K500 specification, table 10: sustained read in zone 0"),
    (31_000_000.0, "Hitachi Deskstar 7K500 specification, table 10: sustained read in zone 29"),
    (1.0, "Hitachi 5K320, table 7: single track read seek, including settling"),
    (12.0, "Hitachi 5K320, table 5: average read seek, including settling"),
    (20.0, "Hitachi 5K320, table 6: full stroke read seek"),
    (11.1, "Hitachi 5K320, table 8: 5400 rpm"),
    (0.2, TYPICAL),
    READ_AHEAD,
    PAGE,
];

/// A flash drive on USB 2.
const USB2: [(f64, &str); COUNT] = [
    (16_000_000_000.0, TYPICAL),
    AT_THE_START,
    USB_RATE,
    USB_RATE,
    FLASH_ACCESS,
    FLASH_ACCESS,
    FLASH_ACCESS,
    (0.0, "nothing turns"),
    (0.25, "typical: a microframe, 125 us, each for the command and the status of a bulk-only transfer"),
    READ_AHEAD,
    PAGE,
];
const USB_RATE: (f64, &str) =
    (30_000_000.0, "Wikipedia, USB (Communications): reads of 30 to 42 MB/s in routine tests");
// Less the times of the command and of the 1 KiB itself.
const FLASH_ACCESS: (f64, &str) =
    (0.3, "flashbench-results, Patriot Xporter XT on USB 2: 0.55 ms to 0.87 ms for 1 KiB elsewhere");

/// A memory card of the application performance class A1, as slow as the class allows.
const SD_CARD: [(f64, &str); COUNT] = [
    (16_000_000_000.0, TYPICAL),
    AT_THE_START,
    (10_000_000.0, "SD 5.1, class A1: 10 MB/s sustained"),
    (10_000_000.0, "SD 5.1, class A1: 10 MB/s sustained"),
    CARD_ACCESS,
    CARD_ACCESS,
    CARD_ACCESS,
    (0.0, "nothing turns"),
    (0.0, "included in the rates of the class"),
    READ_AHEAD,
    PAGE,
];
// 1 s / 1500 - 4096 bytes / 10 MB/s
const CARD_ACCESS: (f64, &str) = (0.257, "SD 5.1, class A1: 1500 random reads of 4 KiB a second");

/// The kinds of device.
const KINDS: [(&str, &[(f64, &str); COUNT]); 5] =
    [("dvd", &DVD), ("cd", &CD), ("hdd", &HDD), ("usb2", &USB2), ("sdcard", &SD_CARD)];

/// A device from which a bundle is read.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedDevice {
    kind: &'static str,
    parameters: [Parameter; COUNT],
}

impl SimulatedDevice {
    /// The names of the devices.
    pub const KINDS: [&str; 5] = [KINDS[0].0, KINDS[1].0, KINDS[2].0, KINDS[3].0, KINDS[4].0];

    /// Returns the device of this name.
    #[must_use]
    pub fn of(kind: &str) -> Option<Self> {
        let (kind, values) = KINDS.into_iter().find(|(name, _)| *name == kind)?;
        let parameters = std::array::from_fn(|at| {
            let ((name, unit), (value, source)) = (NAMES[at], values[at]);
            Parameter { name, unit, value, source }
        });
        Some(Self { kind, parameters })
    }

    /// Returns its name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns its parameters.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Sets a parameter.
    ///
    /// # Errors
    /// Returns an error if there is no such parameter, or if it cannot have this value.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), Error> {
        let Some(parameter) = self.parameters.iter_mut().find(|parameter| parameter.name == name) else {
            let names = NAMES.map(|(name, _)| name).join(", ");
            return Err(Error::Usage(format!("a device has no parameter {name}: it has {names}")));
        };
        // Lengths and rates cannot be 0, but times and places can.
        let least = match parameter.unit {
            "ms" => 0.0,
            _ if name == "place_bytes" => 0.0,
            _ => 1.0,
        };
        if !(least..=MOST).contains(&value) {
            return Err(Error::Usage(format!(
                "{name} cannot be {value}: it must be from {least} to {MOST}, in {}",
                parameter.unit
            )));
        }
        (parameter.value, parameter.source) = (value, "given");
        Ok(())
    }

    /// Returns the parameters for computing times.
    pub(super) fn model(&self) -> Model {
        let [
            capacity,
            place,
            start_rate,
            end_rate,
            short_seek,
            third_seek,
            full_seek,
            turn,
            request,
            read_ahead,
            block,
        ] = self.parameters.map(|parameter| parameter.value);
        Model {
            capacity,
            place: place.floor(),
            start_rate,
            end_rate,
            short_seek,
            third_seek,
            full_seek,
            turn,
            request,
            read_ahead: read_ahead.floor(),
            block: block.floor(),
        }
    }
}

/// How long a device takes. Bytes are whole numbers up to 2^53, rates are in bytes per second, and times in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    pub(super) capacity: f64,
    pub(super) place: f64,
    start_rate: f64,
    end_rate: f64,
    short_seek: f64,
    third_seek: f64,
    full_seek: f64,
    turn: f64,
    pub(super) request: f64,
    pub(super) read_ahead: f64,
    pub(super) block: f64,
}

impl Model {
    /// Returns the rate at a place, in bytes per second. At constant angular velocity it grows with the radius, and the bytes within a radius with
    /// the area.
    pub(super) fn rate(&self, place: f64) -> f64 {
        let (start, end) = (self.start_rate, self.end_rate);
        (start * start + (end * end - start * start) * (place / self.capacity).min(1.0)).sqrt()
    }

    /// Returns the time to read so many bytes from a place on. The square of the rate is linear in the place, so the mean of the rates at both ends
    /// is exact.
    pub(super) fn transfer(&self, place: f64, bytes: f64) -> f64 {
        bytes * 2000.0 / (self.rate(place) + self.rate(place + bytes))
    }

    /// Returns the time to move the head from one place to another, until it can read there.
    pub(super) fn seek(&self, from: f64, to: f64) -> f64 {
        // The rate is proportional to the radius, unless it is constant.
        let whole = (self.end_rate - self.start_rate).abs();
        let stroke = if whole > 0.0 {
            (self.rate(to) - self.rate(from)).abs() / whole
        } else {
            ((to - from).abs() / self.capacity).min(1.0)
        };
        // Ruemmler and Wilkes, "An introduction to disk drive modeling": the head accelerates over short distances, where the time grows with the
        // square root, and coasts over long ones, where it grows linearly.
        const THIRD: f64 = 1.0 / 3.0;
        let moving = if stroke < THIRD {
            self.short_seek + (self.third_seek - self.short_seek) * (stroke / THIRD).sqrt()
        } else {
            self.third_seek + (self.full_seek - self.third_seek) * (stroke - THIRD) / (1.0 - THIRD)
        };
        // On average it waits for half a turn.
        moving + self.turn / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeks_pass_the_points_of_the_data_sheet() {
        let model = SimulatedDevice::of("hdd").expect("a device").model();
        let outer = model.seek(0.0, model.capacity);
        assert!((outer - (20.0 + 11.1 / 2.0)).abs() < 1e-9, "{outer}");
        let near = model.seek(0.0, 4096.0);
        assert!((6.5..7.0).contains(&near), "{near}");
        assert!(model.rate(0.0) > model.rate(model.capacity));
    }

    #[test]
    fn a_disc_is_slow_at_its_hub() {
        for kind in ["dvd", "cd"] {
            let model = SimulatedDevice::of(kind).expect("a device").model();
            assert!(model.rate(0.0) * 2.0 < model.rate(model.capacity), "{kind}");
            // Half of the bytes lie farther out than half of the stroke.
            let (half, end) = (model.rate(model.capacity / 2.0), model.rate(model.capacity));
            assert!(half > (model.rate(0.0) + end) / 2.0, "{kind}");
        }
    }

    #[test]
    fn a_card_reads_as_often_as_its_class_says() {
        let model = SimulatedDevice::of("sdcard").expect("a device").model();
        let each = model.seek(0.0, 1e9) + model.transfer(1e9, 4096.0);
        assert!((each - 1000.0 / 1500.0).abs() < 0.001, "{each}");
    }

    #[test]
    fn parameters_have_sources_and_limits() {
        for kind in SimulatedDevice::KINDS {
            let mut device = SimulatedDevice::of(kind).expect("a device");
            assert!(device.parameters().iter().all(|parameter| !parameter.source.is_empty()), "{kind}");
            device.set("turn_ms", 0.0).expect("nothing need turn");
            assert_eq!(device.parameters()[7].source, "given");
            for (name, value) in [("turn_ms", -1.0), ("capacity_bytes", 0.0), ("block_bytes", f64::NAN), ("speed", 1.0)]
            {
                assert!(device.set(name, value).is_err(), "{kind}: {name}={value}");
            }
        }
        assert_eq!(SimulatedDevice::of("tape"), None);
    }
}
