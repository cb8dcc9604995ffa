//! The doctor's report, one line per check, with the next step below the checks that need one.

use drydock_api::{Check, CheckStatus, Doctor};

use super::style::{BAD, CAUTION, GOOD, paint, plain};

/// Returns the doctor's report.
pub(crate) fn report(doctor: &Doctor) -> String {
    let mut text: String = doctor.checks.iter().map(check).collect();
    if doctor.stale_locks > 0 {
        let locks = format!("{} stale locks; see `drydock lock list`", doctor.stale_locks);
        text.push_str(&format!("{}  {locks}\n", paint(CAUTION, "warn ")));
    }
    text
}

fn check(check: &Check) -> String {
    let status = match check.status {
        CheckStatus::Ok => paint(GOOD, "ok   "),
        CheckStatus::Warn => paint(CAUTION, "warn "),
        CheckStatus::Error => paint(BAD, "error"),
    };
    let mut text = format!("{status}  {}: {}\n", plain(&check.name), plain(&check.text));
    if let Some(hint) = &check.hint {
        text.push_str(&format!("       {}\n", plain(hint)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;

    #[test]
    fn what_needs_doing_stands_below_its_check() {
        let check = |status, hint: Option<&str>| Check {
            name: "git".into(),
            status,
            text: "2.30".into(),
            hint: hint.map(Into::into),
        };
        let doctor = Doctor {
            checks: vec![
                check(CheckStatus::Ok, None),
                check(CheckStatus::Error, Some("install a newer one")),
            ],
            stale_locks: 2,
        };
        assert_eq!(
            bare(&report(&doctor)),
            "ok     git: 2.30\nerror  git: 2.30\n       install a newer one\n\
             warn   2 stale locks; see `drydock lock list`\n"
        );
    }
}
