//! Keys of the tests: public examples of the RFCs, and an RSA key that exists only here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trunkline_protocol::RawJson;

use super::{PublicJwk, SigningKey, decode_base64url};

/// The EC key of RFC 7515 A.3.
pub(crate) const EC_X: &str = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU";
pub(crate) const EC_Y: &str = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0";

/// The Ed25519 key of RFC 8037 A.1.
pub(crate) const ED_X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const ED_SEED: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";

/// The modulus of the RSA key of RFC 7515 A.2.
pub(crate) const RSA_N: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d\
    4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R\
    2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";

/// The modulus of the RSA key of RFC 7638 §3.1.
pub(crate) const THUMBPRINT_N: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc\
    _BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7\
    d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJ\
    zKnqDKgw";

const RSA_PKCS8: &str = "\
    MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQDtYAIqoN27ebAAkyzQzik/WZXWPpnyEUnLMOa+HsCG8mjm\
    sQmdeARRACCFxBY4TN1xH7WbhmNvbKaauBNeJTtk4sLQOtujanCa1xmFfP19vW/Vt/mcB6bzysH3ynUFLFbJrAnE8R27ETn1\
    Xjx5u6+UZM+fG0kPaROOxY8qG1OQmeu5dL+7XKNmfNTGVFxlIUL2oFChquTVvm3b6bE4+uiHCQMFnkW09tBQEQTxfwo1gdUo\
    gwOeG7Qf9nIXkJbVnE4FrfkwXIBlYkGsE6JJAPOvySDtYVNNUuxuxBIBvxx9iXS1LfpkQIL/wXy8c8OvTC89cPgPs2XAPq/w\
    ibbZnaFjAgMBAAECggEAapREdMJkvEPPZ/qs0RX3xCdjlN3nvh3QDcjnmW5yUETwH8BWilr0STAu6hCYT3AHrz6nCm0FIWbd\
    yTMkEw3RhKMiCF+c9VsZsxQoM9zibj4LxCBGFS4EYorjm2/OKeP2FbfGbSQ7jp4V8Vr9+URxecXnyM7191LdAqomdSfu1cnB\
    BJUyXOzHlYRYQasrUxuuNnp5EGo/s8jS3P5lwsF8hhu1Wds6K+QxhUgRC/pUMRQogXUp9AnMPN3RTqUtU00N50qDd89rTglj\
    B7gaR8Bh9wtcrqI6ifLW8bRQsuvr0z7nzWTWQf53PeZObqhGF47M/Kn7ThCGwuMVu8s98+RkoQKBgQD3ZIxsqfovebAZoi4B\
    ZS93wGIZhY+dEsAKAHAobjyM+uNqEEGPDh4QDRQQiKHEKtC4eW0Z7iCQ+u8yGIs3SuHIZVnF6Dqa98l0asFzdSTl0fIbRmEr\
    ZZ5mMuoOBay4x6cfHtJYT0RlndGZ8BuoG6CvFVxJYmq0APPuG3L5jmd0wwKBgQD1ojwrrGzHkoMszkcaIo6iKyYkZa79vgnz\
    dKpSRcES62ehYASzSKmPGTpHGQjpN/V77yaEd1wQswhWAeEJxhXAiO980ukSUfbWvLcmaWJNDycV69gPizII8Pbz0FK6TKx8\
    U1dTScG24qtrPDyTGRjyB8T9vdQPZORuikzOsUfW4QKBgQDnOKX6pf+8wapyut7u1OjBryDBI9DviOfOMUyirS2Qwqksp5bu\
    os48SEz5iwpOs4my8WKkOqlbd/16P/BWNHnEd92pGH01++PhGCpIxDNBTbFQBr6o9ehPMsUJaApgBdLQRlloymVt6ExP6Veg\
    DnpnSbqgqAh8xus2H5edYZiWSwKBgAmSivnAvHSCly4V09uG4Twcpl3gwJMO5uBf+Ys/QKj2F5HIZiZ+fG0hNI40wY4lKiHs\
    Tfn3lNTpxTdk11pEJ/Da5UpeBcs6+n2f2RtcHAKYxpMqH79rU0XZ7iXORosQFeC6drq+MxhnePqy3EF3RuuXteuVjEAVVHmi\
    Vh/v9LbBAoGBAKJO23COKYL0xPPt+gFw4w7OnDcE7qQi6E+jbkq+wbcs3hI8xoQ2POIX4ChrD+O1aqARVcJA3yzjYCOg6W7u\
    btUdh7H+qqNyR4Z7kCbK1xT6zrngGUhKQrTEgcPCt8GwVpVWz3LunR174bBY7Wh1xUealSAHoLoGt60cnSOSFekk";

/// Returns the PKCS#8 DER of an RSA key of 2,048 bits.
pub(crate) fn rsa_pkcs8() -> Vec<u8> {
    STANDARD.decode(RSA_PKCS8).unwrap()
}

/// Returns the Ed25519 key of RFC 8037 A.1 as PKCS#8 DER.
pub(crate) fn ed25519_pkcs8() -> Vec<u8> {
    let prefix = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    [&prefix[..], &decode_base64url(ED_SEED).unwrap()].concat()
}

/// Returns the Ed25519 key of RFC 8037 A.1, with signatures that are a function of the message.
pub(crate) fn ed25519_key() -> SigningKey {
    SigningKey::from_pkcs8(&ed25519_pkcs8(), None).unwrap()
}

/// Generates an ES256 key.
pub(crate) fn es256_key() -> SigningKey {
    SigningKey::from_pkcs8(&SigningKey::generate_es256().unwrap(), None).unwrap()
}

/// Returns the JWK of a key, with a `kid`.
pub(crate) fn jwk(key: &SigningKey, kid: &str) -> PublicJwk {
    let mut members = key.public().to_jwk().members().unwrap();
    members.set("kid", RawJson::from_text(kid));
    PublicJwk::from_members(&members).unwrap()
}
