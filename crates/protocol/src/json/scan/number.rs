use super::{JsonScanner, ScanError};

/// The digits of an exponent from which on a number may not fit a double.
const LONG_EXPONENT: usize = 3;
/// The characters of a number from which on it may not, whatever its exponent.
const LONG_NUMBER: usize = 200;

impl JsonScanner<'_> {
    pub(super) fn skip_number(&mut self) {
        let start = self.at;
        if self.bytes.get(self.at) == Some(&b'-') {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail(ScanError::Syntax),
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits();
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            let exponent = self.at;
            self.digits();
            self.suspicious |= self.at - exponent >= LONG_EXPONENT;
        }
        self.suspicious |= self.at - start >= LONG_NUMBER;
    }

    fn digits(&mut self) {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start {
            self.fail(ScanError::Syntax);
        }
    }
}
