use std::sync::Arc;
use std::task::Context;

use tracing::Span;
use trunkline_protocol::envelope::MalformedMessage;
use trunkline_protocol::{Era, Message, Method, Notification, Refusal, Request, RequestId, Revision, era};
use trunkline_transport::Channel;

use super::ChannelServer;
use super::channel_call::ModernCallStatus;
use crate::admission::BytePermit;
use crate::call::SessionState;
use crate::caller_identity::CallerIdentity;
use crate::edge::id_in_use;
use crate::edge::legacy::{self, LiveSession};
use crate::edge::modern;
use crate::server_core::now;

/// The legacy session of a channel.
impl<C: Channel> ChannelServer<C> {
    pub(super) fn receive_legacy(
        &mut self,
        message: Message,
        reserved: Option<BytePermit>,
        span: Span,
        cx: &mut Context<'_>,
    ) {
        if let Message::Notification(note) = &message {
            self.cancel_modern(note);
        }
        match (&self.session, message) {
            (Some(_), Message::Request(request)) if self.is_modern(&request.id) => {
                self.send_error(Some(&request.id), &id_in_use());
            }
            (Some(session), message) => {
                let begun =
                    legacy::begin(&self.core, session, message, &self.transport()).hold_permit(reserved);
                self.begin(begun, span, cx);
                self.request_roots();
            }
            // A ping is answered in any state.
            (None, Message::Request(request)) if request.method == Method::Ping.as_str() => {
                let reply = trunkline_protocol::codec::ServerResult::Empty;
                self.channel.send(&self.core.result(&request.id, &reply, Revision::NEWEST_LEGACY));
            }
            _ => {}
        }
    }

    /// Reports whether an id is that of a modern call or stream: the eras on one channel share one set of ids.
    pub(super) fn is_modern(&self, id: &RequestId) -> bool {
        self.modern_calls.contains_key(id) || self.subscriptions.contains_key(id)
    }

    /// Refuses the requests of a batch with ids that modern requests use.
    pub(super) fn refuse_duplicate_ids(&self, messages: &mut [Result<Message, MalformedMessage>]) {
        for message in messages {
            if let Ok(Message::Request(request)) = message
                && self.is_modern(&request.id)
            {
                *message = Err(MalformedMessage { refusal: id_in_use(), id: Some(request.id.clone()) });
            }
        }
    }

    /// Requests the client's roots, if a handler needs them outside of any call.
    pub(super) fn poll_roots_request(&mut self, cx: &mut Context<'_>) {
        let roots = self.session.as_ref().map(|session| &session.state().roots);
        if roots.is_some_and(|roots| roots.register_if_declared(cx.waker())) {
            self.request_roots();
        }
    }

    /// Requests the client's roots, if the session should after the client's last message.
    pub(super) fn request_roots(&mut self) {
        if let Some(request) = self.session.as_ref().and_then(|session| session.request_roots()) {
            self.channel.send(&request);
        }
    }

    fn cancel_modern(&mut self, note: &Notification) {
        if note.method != "notifications/cancelled" {
            return;
        }
        let Some(id) = era::cancelled_request(note) else { return };
        self.subscriptions.remove(&id);
        self.queued_calls.cancel(&id);
        match self.modern_calls.get_mut(&id) {
            Some(ModernCallStatus::Running(call)) => call.cancel(),
            Some(resuming) => *resuming = ModernCallStatus::Cancelled,
            None => {}
        }
    }

    pub(super) fn initialize(&mut self, request: &Request) {
        match legacy::accept_handshake(
            &self.core,
            request,
            CallerIdentity::new(&self.principal, self.grant.as_ref()),
        ) {
            // A channel has one session, from its handshake to its end.
            Ok(_) if self.session.is_some() => {
                let refusal = Refusal::INVALID_REQUEST
                    .with_message("the session is already initialized; open another connection");
                self.send_error(Some(&request.id), &refusal);
            }
            Ok(handshake) => {
                let state = SessionState::new(&self.core, &handshake.record, self.env.clone(), self.state_id);
                let session = Arc::new(
                    LiveSession::new(handshake.record, state, now())
                        .with_address(self.remote_address)
                        .observed_by(self.core.observer.as_ref(), self.transport_kind.name()),
                );
                tracing::info!(session = %session.id().short(), revision = %session.revision(), "session opened");
                self.subscription = Some(session.subscription(&*self.core.handler));
                let (listed, activity) = (self.core.channel_sessions.clone(), self.activity.clone());
                self.listed = Some(listed.add(&session, self.transport_kind, activity));
                self.start_deadline = None;
                self.core.observe_answered(|| session.observed(), request, &handshake.response);
                self.session = Some(session);
                self.channel.send(&handshake.response);
            }
            Err(refusal) if self.core.revisions.newest_of(Era::Legacy).is_none() => {
                self.channel.send(&modern::refuse(Some(&request.id), &refusal).message);
            }
            Err(refusal) => self.send_error(Some(&request.id), &refusal),
        }
    }
}
