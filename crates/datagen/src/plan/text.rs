//! Texts: names, places, words, letters.

use std::sync::LazyLock;

use crate::data::{names, places, words};
use crate::pattern::write_pattern;
use crate::random::{Draws, Key, Span, Weights};

/// A text that depends on nothing but random draws.
#[derive(Debug)]
pub(crate) enum Text {
    /// The marks of women and men.
    Gender([Box<str>; 2]),
    /// With the key of the gender column that the name agrees with.
    Name(Option<Key>),
    GivenName(Option<Key>),
    FamilyName,
    Company,
    Phone,
    Street,
    Postcode,
    Province,
    /// With the key of the province column that the city lies in.
    City(Option<Key>),
    Words(Span),
    Letters(Span),
    /// The characters that are drawn from.
    Alphabet(Span, Box<[char]>),
    /// A pattern that can be followed.
    Pattern(Box<[u8]>),
    Digits(u64),
}

static FAMILY_NAMES: LazyLock<Weights> = LazyLock::new(|| weights(names::FAMILY.iter().map(|name| name.1)));
static PROVINCES: LazyLock<Weights> =
    LazyLock::new(|| weights(places::PROVINCES.iter().map(|province| province.people)));

fn weights(counts: impl Iterator<Item = u16>) -> Weights {
    Weights::exact(&counts.map(u128::from).collect::<Vec<_>>())
}

impl Text {
    /// The text of a row: one that stands somewhere already, or one written to `out`, which is cleared first.
    #[inline]
    pub(crate) fn make<'a>(&'a self, key: Key, row: u64, out: &'a mut Vec<u8>) -> &'a [u8] {
        let mut draws = key.draws(row);
        let ready = match self {
            Self::Gender(marks) => &marks[gender(&mut draws)],
            Self::GivenName(column) => given_name(*column, row, &mut draws),
            Self::FamilyName => family_name(&mut draws),
            Self::Province => province(&mut draws).name,
            Self::City(None) => {
                let province = province(&mut draws);
                draws.pick(province.cities)
            }
            Self::City(Some(column)) => draws.pick(province(&mut column.draws(row)).cities),
            _ => {
                out.clear();
                self.write(row, &mut draws, out);
                return out;
            }
        };
        ready.as_bytes()
    }

    fn write(&self, row: u64, draws: &mut Draws, out: &mut Vec<u8>) {
        match self {
            Self::Name(column) => name(*column, row, draws, out),
            Self::Company => company(draws, out),
            Self::Phone => phone(draws, out),
            Self::Street => {
                number(1 + draws.below(400), out);
                out.push(b' ');
                out.extend_from_slice(draws.pick(places::STREETS).as_bytes());
            }
            // The first two digits of real ones are between these.
            Self::Postcode => number(100_000 + draws.below(760_000), out),
            Self::Words(lengths) => words(lengths.draw(draws) as usize, draws, out),
            Self::Letters(lengths) => {
                let length = lengths.draw(draws) as u64;
                draws.symbols(26, length, |symbol| out.push(b'a' + symbol));
            }
            Self::Alphabet(lengths, alphabet) => {
                let length = lengths.draw(draws) as u64;
                draws.symbols(alphabet.len() as u64, length, |symbol| {
                    push(alphabet[usize::from(symbol)], out);
                });
            }
            Self::Pattern(pattern) => {
                // The pattern was tried when the column was declared.
                let _ = write_pattern(pattern, draws.symbol(), out);
            }
            Self::Digits(count) => draws.symbols(10, *count, |symbol| out.push(b'0' + symbol)),
            // These stand somewhere already.
            Self::Gender(_) | Self::GivenName(_) | Self::FamilyName | Self::Province | Self::City(_) => {}
        }
    }
}

#[inline]
fn push(next: char, out: &mut Vec<u8>) {
    if next.is_ascii() {
        out.push(next as u8);
    } else {
        out.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

/// 0 for a woman, 1 for a man: the first draw of a gender column, and of a name without one.
#[inline]
fn gender(draws: &mut Draws) -> usize {
    (draws.bits() >> 63) as usize
}

#[inline]
fn given_name(gender_column: Option<Key>, row: u64, draws: &mut Draws) -> &'static str {
    let gender = match gender_column {
        Some(key) => gender(&mut key.draws(row)),
        None => gender(draws),
    };
    draws.pick([names::FEMALE, names::MALE][gender])
}

#[inline]
fn family_name(draws: &mut Draws) -> &'static str {
    names::FAMILY[FAMILY_NAMES.draw(draws)].0
}

pub(crate) fn name(gender_column: Option<Key>, row: u64, draws: &mut Draws, out: &mut Vec<u8>) {
    out.extend_from_slice(given_name(gender_column, row, draws).as_bytes());
    out.push(b' ');
    out.extend_from_slice(family_name(draws).as_bytes());
}

#[inline]
fn province(draws: &mut Draws) -> &'static places::Province {
    &places::PROVINCES[PROVINCES.draw(draws)]
}

fn company(draws: &mut Draws, out: &mut Vec<u8>) {
    for part in [family_name(draws), " ", draws.pick(names::TRADES), " ", draws.pick(names::COMPANY_FORMS)] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn phone(draws: &mut Draws, out: &mut Vec<u8>) {
    out.extend_from_slice(b"+86 1");
    out.push(b'3' + draws.below(7) as u8);
    let mut place = 2;
    draws.symbols(10, 9, |digit| {
        if place % 4 == 3 {
            out.push(b' ');
        }
        out.push(b'0' + digit);
        place += 1;
    });
}

/// Words with a space between them, `length` characters together.
fn words(length: usize, draws: &mut Draws, out: &mut Vec<u8>) {
    let mut left = length;
    while left > words::LONGEST {
        // Leaves room for a space and at least one letter.
        let word = draws.pick(&words::WORDS[..words::UP_TO[words::LONGEST.min(left - 2)]]);
        out.extend_from_slice(word.as_bytes());
        out.push(b' ');
        left -= word.len() + 1;
    }
    if left > 0 {
        out.extend_from_slice(
            draws.pick(&words::WORDS[words::UP_TO[left - 1]..words::UP_TO[left]]).as_bytes(),
        );
    }
}

/// A number in decimal digits.
pub(crate) fn number(mut value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &Text, row: u64) -> String {
        let mut out = Vec::new();
        String::from_utf8(text.make(Key::new(7, "t", "c"), row, &mut out).to_vec()).unwrap()
    }

    #[test]
    fn words_have_the_length_asked_for_and_are_words() {
        for length in 0..200 {
            let text = text(&Text::Words(Span::new(length, length)), length as u64);
            assert_eq!(text.len(), length as usize);
            assert!(text.is_empty() || text.split(' ').all(|word| words::WORDS.contains(&word)), "{text:?}");
        }
    }

    #[test]
    fn a_city_lies_in_the_province_that_its_column_says() {
        let column = Key::new(7, "t", "c");
        for row in 0..2000 {
            let name = text(&Text::Province, row);
            let province = places::PROVINCES.iter().find(|province| province.name == name).unwrap();
            let city = text(&Text::City(Some(column)), row);
            assert!(province.cities.contains(&city.as_str()), "{city} in {name}");
        }
    }

    #[test]
    fn a_name_agrees_with_the_gender_that_its_column_says() {
        let column = Key::new(7, "t", "c");
        let marks = Text::Gender(["F".into(), "M".into()]);
        let mut count = 0;
        for row in 0..2000 {
            let woman = text(&marks, row) == "F";
            count += u32::from(woman);
            let given = text(&Text::GivenName(Some(column)), row);
            let name = text(&Text::Name(Some(column)), row);
            for given in [given.as_str(), name.split_once(' ').unwrap().0] {
                assert_eq!(woman, names::FEMALE.contains(&given), "{given}");
                assert_eq!(!woman, names::MALE.contains(&given), "{given}");
            }
        }
        assert!((900..1100).contains(&count), "{count}");
    }

    #[test]
    fn provinces_with_more_people_and_common_names_come_more_often() {
        let count = |wanted: &Text, name: &str| (0..10_000).filter(|row| text(wanted, *row) == name).count();
        assert!(count(&Text::Province, "Guangdong") > 10 * count(&Text::Province, "Tibet"));
        assert!(count(&Text::FamilyName, "Wang") > 10 * count(&Text::FamilyName, "Chang"));
    }

    #[test]
    fn numbers_are_written_as_they_are_read() {
        for value in [0, 7, 10, 999, 1000, u64::MAX] {
            let mut out = Vec::new();
            number(value, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn texts_look_like_what_they_are() {
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
        for row in 0..1000 {
            let phone = text(&Text::Phone, row);
            assert!(phone.starts_with("+86 1") && phone.len() == 17 && digits(&phone) == 13, "{phone}");
            let postcode = text(&Text::Postcode, row);
            assert!(postcode.len() == 6 && digits(&postcode) == 6, "{postcode}");
            let street = text(&Text::Street, row);
            assert!(places::STREETS.contains(&street.split_once(' ').unwrap().1), "{street}");
            let company = text(&Text::Company, row);
            assert!(names::COMPANY_FORMS.iter().any(|form| company.ends_with(form)), "{company}");
            let letters = text(&Text::Letters(Span::new(3, 30)), row);
            assert!((3..=30).contains(&letters.len()) && letters.bytes().all(|b| b.is_ascii_lowercase()));
        }
        assert_eq!(text(&Text::Digits(0), 1), "");
        assert_eq!(text(&Text::Digits(33), 1).len(), 33);
    }
}
