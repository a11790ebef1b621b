//! A table of requests that parsers and proxies have disagreed about, by the categories of llhttp's tests and of public
//! collections of request smuggling (CL.TE, TE.CL, TE.TE, CL.0, chunk extensions and sizes, line endings, header names).
//!
//! Each row is sent whole and byte by byte. A row that is read has to give exactly the listed requests; a refused row gives
//! none, and nothing behind it is read as a request.

use super::support::reader::{ReadRequest, read_by_hyper, read_by_us};

/// What is sent, and the requests that are read: method, target and body.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

/// The next request of the connection, which must be read only where the one before it has an undisputed end.
const NEXT: (&str, &str, &str) = ("GET", "/next", "");

const ACCEPTED: &[Row] = &[
    ("a plain request", "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", &[("GET", "/a", "")]),
    ("an empty line before the request", "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n", &[("GET", "/a", "")]),
    ("HTTP/1.0 without Host", "GET /a HTTP/1.0\r\n\r\n", &[("GET", "/a", "")]),
    ("a header without a value", "GET /a HTTP/1.1\r\nHost: h\r\nX:\r\n\r\n", &[("GET", "/a", "")]),
    ("tabs around a value", "GET /a HTTP/1.1\r\nHost: h\r\nX:\t1\t\r\n\r\n", &[("GET", "/a", "")]),
    (
        "a name in capitals",
        "POST /a HTTP/1.1\r\nHOST: h\r\nCONTENT-LENGTH: 1\r\n\r\nb",
        &[("POST", "/a", "b")],
    ),
    ("an unknown method", "BREW /a HTTP/1.1\r\nHost: h\r\n\r\n", &[("BREW", "/a", "")]),
    ("a query with a question mark", "GET /a?b=c?d HTTP/1.1\r\nHost: h\r\n\r\n", &[("GET", "/a?b=c?d", "")]),
    ("the whole server", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", &[("OPTIONS", "*", "")]),
    ("an absolute target", "GET http://h/a HTTP/1.1\r\nHost: h\r\n\r\n", &[("GET", "http://h/a", "")]),
    (
        "two requests at once",
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("GET", "/a", ""), NEXT],
    ),
    (
        "a body and the next request",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nxyGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "xy"), NEXT],
    ),
    (
        "an empty body",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", ""), NEXT],
    ),
    (
        "no length means no body",
        "POST /a HTTP/1.1\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", ""), NEXT],
    ),
    (
        "leading zeros in a length",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 002\r\n\r\nxyGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "xy"), NEXT],
    ),
    (
        "a body of GET",
        "GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nxGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("GET", "/a", "x"), NEXT],
    ),
    (
        "chunks",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "abc0123456789"), NEXT],
    ),
    (
        "the coding in capitals",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        &[("POST", "/a", "x")],
    ),
    (
        "a chunk extension",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;name=value\r\nx\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "x"), NEXT],
    ),
    (
        "a trailer",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX: y\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "x"), NEXT],
    ),
    (
        "a trailer with a length changes nothing",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nContent-Length: 9\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("POST", "/a", "x"), NEXT],
    ),
    (
        "nothing is read behind `Connection: close`",
        "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("GET", "/a", "")],
    ),
    (
        "nothing is read behind HTTP/1.0",
        "GET /a HTTP/1.0\r\nHost: h\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
        &[("GET", "/a", "")],
    ),
];

/// Requests that are refused. Most would hide `GET /next` from one reader and show it to another.
const REFUSED: &[(&str, &str)] = &[
    // Line endings.
    ("lines end with LF alone", "GET /a HTTP/1.1\nHost: h\n\n"),
    ("one header ends with LF alone", "GET /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n"),
    ("the head ends with LF LF", "GET /a HTTP/1.1\r\nHost: h\r\n\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a lone CR in a value", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n"),
    ("a lone CR between headers", "GET /a HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"),
    ("CR CR LF", "GET /a HTTP/1.1\r\nHost: h\r\r\n\r\n"),
    // The request line.
    ("no version", "GET /a\r\nHost: h\r\n\r\n"),
    ("HTTP/0.9", "GET /a HTTP/0.9\r\nHost: h\r\n\r\n"),
    ("HTTP/2.0", "GET /a HTTP/2.0\r\nHost: h\r\n\r\n"),
    ("HTTP/1.2", "GET /a HTTP/1.2\r\nHost: h\r\n\r\n"),
    ("HTTP/1.10", "GET /a HTTP/1.10\r\nHost: h\r\n\r\n"),
    ("a version in lower case", "GET /a http/1.1\r\nHost: h\r\n\r\n"),
    ("another protocol", "GET /a ICE/1.1\r\nHost: h\r\n\r\n"),
    ("a space in the target", "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a tab as separator", "GET\t/a\tHTTP/1.1\r\nHost: h\r\n\r\n"),
    ("two spaces", "GET  /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a space before the method", " GET /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a colon in the method", "GE:T /a HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a NUL in the target", "GET /\0a HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("a control character in the target", "GET /\x7fa HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("text behind the version", "GET /a HTTP/1.1 x\r\nHost: h\r\n\r\n"),
    ("HTTP/2 with prior knowledge", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ("TLS", "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03"),
    ("a fragment in the target", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("an absolute target of another scheme", "GET file://h/a HTTP/1.1\r\nHost: h\r\n\r\n"),
    ("HTTP/1.1 without Host", "GET /a HTTP/1.1\r\n\r\n"),
    ("two Host headers", "GET /a HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n"),
    // Header names.
    ("a space before the colon", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length : 2\r\n\r\nxy"),
    ("a tab before the colon", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length\t: 2\r\n\r\nxy"),
    ("a space inside a name", "GET /a HTTP/1.1\r\nHost: h\r\nX y: z\r\n\r\n"),
    ("an empty name", "GET /a HTTP/1.1\r\nHost: h\r\n: z\r\n\r\n"),
    ("no colon", "GET /a HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n"),
    ("a folded value", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n"),
    ("a folded coding", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("a first header that is folded", "GET /a HTTP/1.1\r\n Host: h\r\n\r\n"),
    ("a NUL in a name", "GET /a HTTP/1.1\r\nHost: h\r\nX\0: y\r\n\r\n"),
    ("a NUL in a value", "GET /a HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"),
    ("a backspace in a name", "GET /a HTTP/1.1\r\nHost: h\r\nTransfer-Encodin\x08g: chunked\r\n\r\n"),
    ("a name beyond ASCII", "GET /a HTTP/1.1\r\nHost: h\r\nTransfer\u{2010}Encoding: chunked\r\n\r\n"),
    // Lengths.
    ("two lengths", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy"),
    ("a list of two lengths", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 2\r\n\r\nxy"),
    ("a negative length", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\nx"),
    ("a length with a plus", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx"),
    ("a hexadecimal length", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0x1\r\n\r\nx"),
    ("a length with a fraction", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1.0\r\n\r\nx"),
    ("a length with an underscore", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1_0\r\n\r\nxxxxxxxxxx"),
    ("a length with a space inside", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1 0\r\n\r\nxxxxxxxxxx"),
    ("an empty length", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\nx"),
    ("a length over 64 bits", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551617\r\n\r\nx"),
    ("a length in other digits", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: \u{ff11}\r\n\r\nx"),
    // A length and a coding: CL.TE and TE.CL.
    (
        "CL.TE",
        "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
    ),
    (
        "TE.CL",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n22\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n\r\n0\r\n\r\n",
    ),
    (
        "a coding and a length of zero",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n",
    ),
    // Codings that only one reader takes for chunked: TE.TE.
    ("an unknown coding", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    (
        "identity",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
    ),
    ("gzip", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nx"),
    (
        "chunked before another",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    ),
    ("chunked twice", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    (
        "two codings in two headers",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    ),
    ("a quoted coding", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"),
    (
        "a coding with a parameter",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    ),
    (
        "a vertical tab before the coding",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "a form feed before the coding",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0cchunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "an empty coding",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n",
    ),
    ("a coding of HTTP/1.0", "POST /a HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a comma alone", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"),
    // Chunk sizes.
    (
        "a chunk size with 0x",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a negative chunk size",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk size with a plus",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk size with an underscore",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk size over 64 bits",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\nx\r\n0\r\n\r\n",
    ),
    (
        "an empty chunk size",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a space before a chunk size",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk size that ends with LF",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
    ),
    (
        "a lone LF in a chunk extension",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nx\r\n0\r\n\r\n",
    ),
    (
        "a lone CR in a chunk extension",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a\rb\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a space behind a chunk size",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\nx\r\n0\r\n\r\n",
    ),
    (
        "an empty chunk extension",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk extension with an open quote",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;a=\"b\r\nx\r\n0\r\n\r\n",
    ),
    (
        "a chunk that is longer than its size",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n",
    ),
    (
        "a chunk that ends with LF",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\n0\r\n\r\n",
    ),
    (
        "a chunk that ends with two other bytes",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxXX0\r\n\r\n",
    ),
    (
        "the last chunk ends with LF",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\n\n",
    ),
    (
        "a trailer without a colon",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nGET /next HTTP/1.1\r\n\r\n",
    ),
    (
        "a trailer with a space before the colon",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX : y\r\n\r\n",
    ),
    ("a body that is cut short", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nxy"),
    ("chunks that are cut short", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nxy"),
    (
        "chunks without the last",
        "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
    ),
];

fn seen(requests: &[ReadRequest]) -> Vec<(&str, &str, &str)> {
    requests
        .iter()
        .map(|read| (&*read.method, &*read.target, std::str::from_utf8(&read.body).unwrap()))
        .collect()
}

fn for_each_delivery(bytes: &str, check: impl Fn(usize, &tokio::runtime::Runtime)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for piece in [1, bytes.len()] {
        check(piece, &runtime);
    }
}

#[test]
fn accepted_requests_have_one_reading() {
    for (name, bytes, expected) in ACCEPTED {
        for_each_delivery(bytes, |piece, runtime| {
            let ours = runtime.block_on(read_by_us(bytes.as_bytes(), piece));
            assert_eq!(seen(&ours), *expected, "{name}, in pieces of {piece}");
            let theirs = runtime.block_on(read_by_hyper(bytes.as_bytes(), piece));
            assert_eq!(seen(&theirs).get(..ours.len()), Some(*expected), "{name}, by hyper");
        });
    }
}

#[test]
fn ambiguous_requests_and_everything_behind_them_are_refused() {
    for (name, bytes) in REFUSED {
        for_each_delivery(bytes, |piece, runtime| {
            let ours = runtime.block_on(read_by_us(bytes.as_bytes(), piece));
            assert!(ours.is_empty(), "{name}, in pieces of {piece}: {:?}", seen(&ours));
        });
    }
}
