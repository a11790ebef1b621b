//! Reads messages of protobuf, for tests.

/// A message, as its fields in their order.
#[derive(Debug, Default, Clone)]
pub(crate) struct ProtoMessage(Vec<(u32, ProtoValue)>);

#[derive(Debug, Clone)]
enum ProtoValue {
    Number(u64),
    Bytes(Vec<u8>),
}

impl ProtoMessage {
    pub(crate) fn parse(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let value = match tag & 7 {
                0 => ProtoValue::Number(varint(&mut bytes)),
                1 => ProtoValue::Number(u64::from_le_bytes(taken(&mut bytes, 8).try_into().unwrap())),
                5 => ProtoValue::Number(u64::from(u32::from_le_bytes(
                    taken(&mut bytes, 4).try_into().unwrap(),
                ))),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    ProtoValue::Bytes(taken(&mut bytes, length).to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((u32::try_from(tag >> 3).unwrap(), value));
        }
        Self(fields)
    }

    fn values(&self, field: u32) -> impl Iterator<Item = &ProtoValue> {
        self.0.iter().filter(move |(known, _)| *known == field).map(|(_, value)| value)
    }

    pub(crate) fn bytes(&self, field: u32) -> Vec<u8> {
        match self.values(field).next() {
            Some(ProtoValue::Bytes(bytes)) => bytes.clone(),
            None => Vec::new(),
            other => panic!("field {field}: {other:?}"),
        }
    }

    pub(crate) fn text(&self, field: u32) -> String {
        String::from_utf8(self.bytes(field)).unwrap()
    }

    pub(crate) fn number(&self, field: u32) -> u64 {
        match self.values(field).next() {
            Some(ProtoValue::Number(number)) => *number,
            None => 0,
            other => panic!("field {field}: {other:?}"),
        }
    }

    pub(crate) fn messages(&self, field: u32) -> Vec<Self> {
        let parse = |value: &ProtoValue| match value {
            ProtoValue::Bytes(bytes) => Self::parse(bytes),
            ProtoValue::Number(_) => panic!("field {field} is a number"),
        };
        self.values(field).map(parse).collect()
    }

    /// Returns the first message of a field; an absent one is empty.
    pub(crate) fn message(&self, field: u32) -> Self {
        self.messages(field).into_iter().next().unwrap_or_default()
    }

    /// Returns the numbers of a packed field of eight bytes each.
    pub(crate) fn packed64(&self, field: u32) -> Vec<u64> {
        self.bytes(field).chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }
}

fn taken<'a>(bytes: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (first, rest) = bytes.split_at(length);
    *bytes = rest;
    first
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = taken(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}
