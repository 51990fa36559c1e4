//! The nine bytes before every body (section 2).

use super::{BODY_SIZE_MAX, DecodeError, RESPONSE, VERSION, VERSION_5};

/// Bytes of a header: version, flags, stream (2), opcode, length (4), big-endian.
pub const HEADER_SIZE: usize = 9;

/// Header flags (section 2.2).
pub mod flags {
    /// The body is compressed.
    pub const COMPRESSION: u8 = 0x01;
    /// Tracing is asked for, or a tracing id precedes the body.
    pub const TRACING: u8 = 0x02;
    /// A bytes map of payload precedes the body.
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    /// A string list of warnings precedes the body.
    pub const WARNING: u8 = 0x08;
}

/// What a frame is (section 2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the specification's
pub enum Opcode {
    Error = 0x00,
    Startup = 0x01,
    Ready = 0x02,
    Authenticate = 0x03,
    Options = 0x05,
    Supported = 0x06,
    Query = 0x07,
    Result = 0x08,
    Prepare = 0x09,
    Execute = 0x0A,
    Register = 0x0B,
    Event = 0x0C,
    Batch = 0x0D,
    AuthChallenge = 0x0E,
    AuthResponse = 0x0F,
    AuthSuccess = 0x10,
}

impl Opcode {
    /// All opcodes, by value.
    pub const ALL: [Self; 16] = [
        Self::Error,
        Self::Startup,
        Self::Ready,
        Self::Authenticate,
        Self::Options,
        Self::Supported,
        Self::Query,
        Self::Result,
        Self::Prepare,
        Self::Execute,
        Self::Register,
        Self::Event,
        Self::Batch,
        Self::AuthChallenge,
        Self::AuthResponse,
        Self::AuthSuccess,
    ];

    /// The opcode of this value.
    #[must_use]
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|o| *o as u8 == value)
    }
}

/// A frame's header, undecoded beyond its fields: version and opcode are as received, so that a
/// server can answer a version that it does not speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Protocol version, with [`RESPONSE`] set in responses.
    pub version: u8,
    /// See [`flags`].
    pub flags: u8,
    /// Chosen by the client, repeated in the answer; negative in events.
    pub stream: i16,
    /// See [`Opcode`].
    pub opcode: u8,
    /// Length of the body in bytes, at most [`BODY_SIZE_MAX`].
    pub body_size: usize,
}

impl Header {
    /// The same in another version of the protocol.
    #[must_use]
    pub fn at(self, version: u8) -> Self {
        Self { version: (self.version & RESPONSE) | version, ..self }
    }

    /// Whether the frame is one of protocol v5.
    #[must_use]
    #[inline]
    pub fn is_v5(&self) -> bool {
        self.version & !RESPONSE == VERSION_5
    }

    /// Of a request, in v4.
    #[must_use]
    pub fn request(stream: i16, opcode: Opcode) -> Self {
        Self { version: VERSION, flags: 0, stream, opcode: opcode as u8, body_size: 0 }
    }

    /// Of a response, in v4.
    #[must_use]
    pub fn response(stream: i16, opcode: Opcode) -> Self {
        Self { version: VERSION | RESPONSE, flags: 0, stream, opcode: opcode as u8, body_size: 0 }
    }

    /// Reads the first nine bytes; None when there are fewer.
    ///
    /// # Errors
    /// [`DecodeError::Length`] when the body's length is beyond [`BODY_SIZE_MAX`].
    #[inline]
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, DecodeError> {
        let Some(&[version, flags, s1, s0, opcode, l3, l2, l1, l0]) =
            bytes.first_chunk::<HEADER_SIZE>()
        else {
            return Ok(None);
        };
        let body_size = u32::from_be_bytes([l3, l2, l1, l0]) as usize;
        if body_size > BODY_SIZE_MAX {
            return Err(DecodeError::Length {
                what: "frame body",
                value: body_size as i64,
                offset: 5,
            });
        }
        Ok(Some(Self { version, flags, stream: i16::from_be_bytes([s1, s0]), opcode, body_size }))
    }

    /// The nine bytes.
    #[must_use]
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_SIZE] {
        let [s1, s0] = self.stream.to_be_bytes();
        let [l3, l2, l1, l0] = (self.body_size as u32).to_be_bytes();
        [self.version, self.flags, s1, s0, self.opcode, l3, l2, l1, l0]
    }

    /// Appends this header and what `body` appends, then sets the length.
    pub fn frame(self, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&self.encode());
        body(out);
        let size = (out.len() - start - HEADER_SIZE) as u32;
        out[start + 5..start + HEADER_SIZE].copy_from_slice(&size.to_be_bytes());
    }
}
