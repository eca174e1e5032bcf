//! Chooses one of several images.

use crate::error::{ImageFault, shown};

/// Returns the number of the image that a tag means; without one, that of the only image. `tags` are those of each image. An image can also be meant by
/// its number, `@N` from 0, as for skopeo.
pub(super) fn choose(tags: &[Vec<&str>], wanted: Option<&str>) -> Result<usize, ImageFault> {
    let listed = || {
        let name = |(number, tags): (usize, &Vec<&str>)| match tags.is_empty() {
            true => vec![format!("@{number}")],
            false => tags.iter().map(|tag| shown(tag.as_bytes())).collect(),
        };
        tags.iter().enumerate().flat_map(name).collect()
    };
    let Some(tag) = wanted else {
        return match tags.len() {
            0 => Err(ImageFault::Empty),
            1 => Ok(0),
            _ => Err(ImageFault::Several { tags: listed() }),
        };
    };
    let by_number = tag.strip_prefix('@').and_then(|number| number.parse().ok());
    if let Some(number) = by_number.filter(|number| *number < tags.len()) {
        return Ok(number);
    }
    let mut found = tags.iter().enumerate().filter(|(_, tags)| tags.contains(&tag)).map(|(number, _)| number);
    match (found.next(), found.next()) {
        (Some(number), None) => Ok(number),
        (Some(_), Some(_)) => {
            let numbers = (0..tags.len()).filter(|number| tags[*number].contains(&tag));
            Err(ImageFault::Several { tags: numbers.map(|number| format!("@{number}")).collect() })
        }
        (None, _) => Err(ImageFault::NoTag { tag: shown(tag.as_bytes()), tags: listed() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_meant_by_its_tag_or_its_number() {
        let tags = [vec!["v1"], vec![], vec!["v2", "latest"], vec!["v3"], vec!["v3"]];
        for (wanted, number) in [("v1", 0), ("@1", 1), ("latest", 2), ("@2", 2), ("@4", 4)] {
            assert_eq!(choose(&tags, Some(wanted)), Ok(number), "{wanted}");
        }
        assert_eq!(choose(&tags[..1], None), Ok(0));
        assert_eq!(choose(&[], None), Err(ImageFault::Empty));
        let all = ["v1", "@1", "v2", "latest", "v3", "v3"].map(str::to_owned).to_vec();
        assert_eq!(choose(&tags, None), Err(ImageFault::Several { tags: all.clone() }));
        assert_eq!(choose(&tags, Some("v3")), Err(ImageFault::Several { tags: vec!["@3".into(), "@4".into()] }));
        for other in ["v4", "@5", "@", "@-1"] {
            assert_eq!(choose(&tags, Some(other)), Err(ImageFault::NoTag { tag: other.into(), tags: all.clone() }));
        }
    }
}
