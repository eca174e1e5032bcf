//! `--recovery N|P%`: how much recovery volumes have.

use sealift::recovery::Amount;

/// Parses a number of recovery volumes, or a share of the bundle in percent.
pub(crate) fn parse_recovery_amount(text: &str) -> Result<Amount, String> {
    let wrong = || "write a number of volumes such as 2, or a share of the bundle such as 5%".to_owned();
    let (digits, is_percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
    let number: u16 = digits.trim().parse().map_err(|_| wrong())?;
    match (number, is_percent) {
        (0, _) => Err(wrong()),
        (101.., true) => Err("100% is the most: as many bytes of recovery as of the bundle".into()),
        (percent, true) => Ok(Amount::Percent(percent.into())),
        (volumes, false) => Ok(Amount::Volumes(volumes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_and_percent() {
        assert_eq!(parse_recovery_amount("2"), Ok(Amount::Volumes(2)));
        assert_eq!(parse_recovery_amount("10%"), Ok(Amount::Percent(10)));
        for bad in ["", "%", "0", "0%", "101%", "-1", "1.5%", "two", "70000"] {
            parse_recovery_amount(bad).expect_err(bad);
        }
    }
}
