use std::ops::{Deref, DerefMut};
use std::task::Waker;
use std::time::Duration;

use trunkline_protocol::Raw;
use trunkline_protocol::model::Question;

use super::ask::AskError;
use super::caller::Caller;
use super::given::Given;
use super::note::Left;
use super::note_queue::NoteQueue;
use crate::env::{Env, Secret};
use crate::unanswered::Reserved;

/// The secrets that one call is watched for.
const MOST_SECRETS: usize = 128;

/// What a call's future and the exchange that carries it both change.
#[derive(Debug)]
pub(super) struct State {
    pub(super) caller: Caller,
    pub(super) parked: bool,
    pub(super) cancelled: bool,
    /// The server has ended the handler, while the caller still waits for the answer that says so.
    pub(super) given_up: bool,
    pub(super) exchange: Option<Waker>,
    talk: Option<Box<Talk>>,
}

/// What a call says and asks, and what came with its requests beside the caller.
///
/// Most calls do nothing but answer. So it is made when it is first written to, and reads as empty before.
#[derive(Debug)]
pub(super) struct Talk {
    /// The secrets of every request that the call has lived through.
    pub(super) secrets: Vec<Secret>,
    /// Answers that came with a request, by key, not yet used.
    pub(super) answers: Vec<(String, Raw)>,
    /// Answers that were used, kept while the call may have to be replayed from its start.
    pub(super) used: Option<Vec<(String, Raw)>>,
    pub(super) asked: Vec<Asked>,
    /// What the client knows the pages by that it was asked to open, by key.
    pub(super) pages: Vec<(String, String)>,
    pub(super) unnamed: usize,
    pub(super) notes: NoteQueue,
    pub(super) progress: f64,
    /// Room for the requests that the call has lived through, where these are large.
    pub(super) reserved: Option<Reserved>,
    pub(super) release: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Asked {
    pub(super) key: String,
    pub(super) question: Question,
    pub(super) sent: bool,
    pub(super) answer: Option<Result<Given, AskError>>,
    pub(super) asker: Option<Waker>,
}

impl State {
    pub(super) fn new(caller: Caller, answers: Vec<(String, Raw)>) -> Self {
        let has_more = !answers.is_empty() || caller.env.secrets().next().is_some();
        let talk = has_more.then(|| {
            let secrets = caller.env.secrets().cloned().collect();
            Box::new(Talk { secrets, answers, ..Talk::NONE })
        });
        Self { caller, parked: false, cancelled: false, given_up: false, exchange: None, talk }
    }

    /// Looks at what cannot wait for the future to be polled.
    pub(super) fn urgent(&mut self) -> Left {
        if self.cancelled {
            return Left::Cancelled;
        }
        // Looked at first, since what is written to is made.
        if self.notes.is_empty() {
            return Left::Nothing;
        }
        self.notes.pop().map_or(Left::Nothing, Left::Note)
    }

    /// Adds the secrets of one more request, as far as there is room.
    pub(super) fn remember(&mut self, env: &Env) {
        for secret in env.secrets() {
            if self.secrets.len() < MOST_SECRETS && !self.secrets.contains(secret) {
                self.secrets.push(secret.clone());
            }
        }
    }
}

impl Deref for State {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        static NONE: Talk = Talk::NONE;
        self.talk.as_deref().unwrap_or(&NONE)
    }
}

impl DerefMut for State {
    fn deref_mut(&mut self) -> &mut Talk {
        self.talk.get_or_insert_with(|| Box::new(Talk::NONE))
    }
}

impl Talk {
    const NONE: Self = Self {
        secrets: Vec::new(),
        answers: Vec::new(),
        used: None,
        asked: Vec::new(),
        pages: Vec::new(),
        unnamed: 0,
        notes: NoteQueue::EMPTY,
        progress: f64::NEG_INFINITY,
        reserved: None,
        release: None,
    };
}
