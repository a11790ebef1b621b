/// Writes a message of protobuf. Fields with their default value are left out, as proto3 has it.
#[derive(Debug, Default)]
pub(super) struct ProtoWriter {
    bytes: Vec<u8>,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Length = 2,
    Fixed32 = 5,
}

impl ProtoWriter {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push((value & 0x7f) as u8);
    }

    fn tag(&mut self, field: u32, wire: WireType) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    pub(super) fn uint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.tag(field, WireType::Varint);
            self.varint(value);
        }
    }

    /// Writes a value that is one of several, where the default counts too.
    pub(super) fn chosen_int(&mut self, field: u32, value: i64) {
        self.tag(field, WireType::Varint);
        self.varint(value.cast_unsigned());
    }

    pub(super) fn fixed32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.tag(field, WireType::Fixed32);
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.chosen_fixed64(field, value);
        }
    }

    /// Writes a value that is one of several, or optional, where the default counts too.
    pub(super) fn chosen_fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, WireType::Fixed64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(super) fn double(&mut self, field: u32, value: f64) {
        self.chosen_fixed64(field, value.to_bits());
    }

    pub(super) fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.tag(field, WireType::Length);
            self.varint(value.len() as u64);
            self.bytes.extend_from_slice(value);
        }
    }

    pub(super) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Writes a text that is one of several, where the empty one counts too.
    pub(super) fn chosen_text(&mut self, field: u32, value: &str) {
        self.tag(field, WireType::Length);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value.as_bytes());
    }

    /// Writes a message within this one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.tag(field, WireType::Length);
        self.varint(inner.bytes.len() as u64);
        self.bytes.extend_from_slice(&inner.bytes);
    }

    /// Writes numbers of eight bytes each as one field.
    pub(super) fn packed64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }
}
