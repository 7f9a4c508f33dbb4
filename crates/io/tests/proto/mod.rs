//! ONNX messages by hand: models that no exporter would write.

/// A protobuf message in the making.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(mut self, mut value: u64) -> Self {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
        self
    }

    pub(crate) fn int(self, field: u64, value: i64) -> Self {
        self.varint(field << 3).varint(value as u64)
    }

    pub(crate) fn bytes(self, field: u64, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut message = self.varint(field << 3 | 2).varint(bytes.len() as u64);
        message.0.extend_from_slice(bytes);
        message
    }

    pub(crate) fn message(self, field: u64, message: Message) -> Self {
        self.bytes(field, message.0)
    }
}

pub(crate) fn node(op: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Message {
    let message = inputs.iter().fold(Message::default(), |message, input| message.bytes(1, input));
    let message = outputs.iter().fold(message, |message, output| message.bytes(2, output));
    message.bytes(3, name).bytes(4, op)
}

pub(crate) fn ints(name: &str, values: &[i64]) -> Message {
    values.iter().fold(Message::default().bytes(1, name), |message, &value| message.int(8, value)).int(20, 7)
}

/// A tensor of f32 zeros.
pub(crate) fn tensor(name: &str, dims: &[i64]) -> Message {
    let count: i64 = dims.iter().product();
    let message = dims.iter().fold(Message::default(), |message, &dim| message.int(1, dim));
    message.int(2, 1).bytes(8, name).bytes(9, vec![0; count as usize * 4])
}

pub(crate) fn model(graph: Message) -> Message {
    Message::default().int(1, 8).bytes(2, "hand").message(7, graph).message(8, Message::default().int(2, 17))
}
