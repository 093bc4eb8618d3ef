//! The date that a template sees as "now" (strftime_now), at midnight. Given, never taken from a
//! clock: a prompt must be a function of the request.

use minijinja::{Error, ErrorKind};

use crate::abi::Failure;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const OUTPUT_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    year: u32,  // 1..=9999
    month: u32, // 1..=12
    day: u32,   // 1..=31
}

impl Date {
    /// "29 Nov 2026"; empty is the epoch's day.
    pub fn parse(text: &str) -> Result<Date, Failure> {
        if text.is_empty() {
            return Ok(Date { year: 1970, month: 1, day: 1 });
        }
        let bad = || Failure::Invalid(format!("the date {text:?} is not like \"29 Nov 2026\""));
        let parts: Vec<&str> = text.split(' ').collect();
        let [day, month, year] = parts[..] else {
            return Err(bad());
        };
        let month = MONTHS.iter().position(|name| name[..3] == *month).ok_or_else(bad)? as u32 + 1;
        let day = day.parse::<u32>().map_err(|_| bad())?;
        let year = year.parse::<u32>().map_err(|_| bad())?;
        let date = Date { year, month, day };
        if !(1..=9999).contains(&year) || day < 1 || day > date.days_in_month(month) {
            return Err(bad());
        }
        Ok(date)
    }

    fn is_leap(&self) -> bool {
        self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0)
    }

    fn days_in_month(&self, month: u32) -> u32 {
        match month {
            2 if self.is_leap() => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    fn day_of_year(&self) -> u32 {
        (1..self.month).map(|month| self.days_in_month(month)).sum::<u32>() + self.day
    }

    /// 0 = Sunday.
    fn weekday(&self) -> u32 {
        let years = self.year - 1;
        (years + years / 4 - years / 100 + years / 400 + self.day_of_year()) % 7
    }

    /// strftime, C locale, at midnight UTC.
    pub fn format(&self, format: &str) -> Result<String, Error> {
        let mut out = String::new();
        let mut characters = format.chars();
        while let Some(character) = characters.next() {
            if out.len() > OUTPUT_BYTES_MAX {
                return Err(Error::new(ErrorKind::InvalidOperation, "the date format is too long"));
            }
            if character != '%' {
                out.push(character);
                continue;
            }
            match characters.next() {
                Some('-') => match characters.next() {
                    Some(unpadded) => {
                        let padded = self.field(unpadded)?;
                        let trimmed = padded.trim_start_matches(['0', ' ']);
                        out.push_str(if trimmed.is_empty() { "0" } else { trimmed });
                    }
                    None => out.push_str("%-"),
                },
                Some(field) => out.push_str(&self.field(field)?),
                None => out.push('%'),
            }
        }
        Ok(out)
    }

    fn field(&self, letter: char) -> Result<String, Error> {
        let month = MONTHS[self.month as usize - 1];
        let weekday = self.weekday();
        Ok(match letter {
            'd' => format!("{:02}", self.day),
            'e' => format!("{:2}", self.day),
            'm' => format!("{:02}", self.month),
            'b' | 'h' => month[..3].to_string(),
            'B' => month.to_string(),
            'Y' => self.year.to_string(),
            'y' => format!("{:02}", self.year % 100),
            'a' => DAYS[weekday as usize][..3].to_string(),
            'A' => DAYS[weekday as usize].to_string(),
            'w' => weekday.to_string(),
            'u' => (if weekday == 0 { 7 } else { weekday }).to_string(),
            'j' => format!("{:03}", self.day_of_year()),
            'F' => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
            'D' | 'x' => format!("{:02}/{:02}/{:02}", self.month, self.day, self.year % 100),
            'H' | 'M' | 'S' => "00".to_string(),
            'I' => "12".to_string(),
            'p' => "AM".to_string(),
            'T' | 'X' => "00:00:00".to_string(),
            'R' => "00:00".to_string(),
            'f' => "000000".to_string(),
            'z' | 'Z' => String::new(),
            'n' => "\n".to_string(),
            't' => "\t".to_string(),
            '%' => "%".to_string(),
            other => {
                return Err(Error::new(
                    ErrorKind::InvalidOperation,
                    format!("strftime_now does not know %{other}"),
                ))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_dates_as_strftime_does() {
        // Expected values from Python's datetime.strftime.
        let date = Date::parse("29 Nov 2026").unwrap();
        assert_eq!(date.format("%d %b %Y").unwrap(), "29 Nov 2026");
        assert_eq!(date.format("%A, %B %-d (%j) %y").unwrap(), "Sunday, November 29 (333) 26");
        let leap = Date::parse("1 Mar 2024").unwrap();
        assert_eq!(leap.format("%a %d/%m/%Y %j %e|%-m|%%").unwrap(), "Fri 01/03/2024 061  1|3|%");
        assert_eq!(Date::parse("").unwrap().format("%a %F %H:%M").unwrap(), "Thu 1970-01-01 00:00");
    }

    #[test]
    fn refuses_what_is_no_date() {
        for text in ["29 Nov", "30 Feb 2024", "0 Jan 2024", "1 jan 2024", "1 Jan 10000", "a b c"] {
            assert!(Date::parse(text).is_err(), "{text}");
        }
        assert!(Date::parse("29 Feb 2024").is_ok());
        assert!(Date::parse("1 Jan 2024").unwrap().format("%Q").is_err());
    }
}
