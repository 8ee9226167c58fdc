//! The protocol: which message goes where, and in which order.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, select, unbounded};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::notification::{
    Cancel, DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, Exit, LogMessage,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{Request as _, Shutdown};
use lsp_types::{
    CancelParams, CompletionOptions, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, HoverProviderCapability, InitializeParams, InitializeResult,
    LogMessageParams, MessageType, NumberOrString, OneOf, PublishDiagnosticsParams, RenameOptions,
    ServerCapabilities, ServerInfo, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, Uri, WorkDoneProgressOptions,
};

use crate::document::Document;
use crate::job::{Event, Finish, Job, News, Stamp};
use crate::position::Encoding;
use crate::report::Reporter;
use crate::requests::{Failure, answer};
use crate::{End, Options};

/// Longer than anybody waits; the loop only looks again.
const IDLE: Duration = Duration::from_secs(3600);

/// What is said where we panic; the standard error has the rest.
const BUG: &str = "a bug of systola: please report it with the file and the position";

pub struct Server {
    pub encoding: Encoding,
    pub reporter: Reporter,
    documents: HashMap<String, Document>,
    options: Options,
    sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// What was received and not looked at.
    queue: VecDeque<Message>,
    events: (Sender<Event>, Receiver<Event>),
    generation: u64,
    is_shut_down: bool,
}

/// The client is gone.
struct Gone;

impl Server {
    pub fn run(connection: Connection, options: Options) -> End {
        let Some(mut server) = Server::start(connection, options) else {
            return End::Abrupt;
        };
        match server.serve() {
            Ok(()) if server.is_shut_down => End::Shutdown,
            Ok(()) | Err(Gone) => End::Abrupt,
        }
    }

    /// The handshake; none where the client leaves in the midst of it.
    fn start(connection: Connection, options: Options) -> Option<Server> {
        let (id, params) = connection.initialize_start().ok()?;
        // A client that describes itself wrongly gets what every client can take.
        let params: InitializeParams = serde_json::from_value(params).unwrap_or_default();
        let client = params.capabilities;
        let general = client.general.as_ref();
        let offered = general.and_then(|g| g.position_encodings.as_deref());
        let encoding = Encoding::negotiate(offered);
        let result = InitializeResult {
            capabilities: capabilities(encoding),
            server_info: Some(ServerInfo {
                name: "systola".to_string(),
                version: Some(env!("CARGO_PKG_VERSION").to_string()),
            }),
        };
        let result = serde_json::to_value(result).ok()?;
        connection.initialize_finish(id, result).ok()?;
        let Connection { sender, receiver } = connection;
        Some(Server {
            encoding,
            reporter: Reporter::for_client(&client),
            documents: HashMap::new(),
            options,
            sender,
            receiver,
            queue: VecDeque::new(),
            events: unbounded(),
            generation: 0,
            is_shut_down: false,
        })
    }

    /// Until the client exits.
    fn serve(&mut self) -> Result<(), Gone> {
        loop {
            if let Some(message) = self.queue.pop_front() {
                // Later messages may take this one back.
                while let Ok(message) = self.receiver.try_recv() {
                    self.receive(message)?;
                }
                match message {
                    Message::Request(request) => self.request(request)?,
                    Message::Notification(note) if note.method == Exit::METHOD => return Ok(()),
                    Message::Notification(note) => {
                        self.guarded(|server| server.notification(note))?;
                    }
                    // The server asks nothing.
                    Message::Response(_) => {}
                }
                // A client that never rests must not keep texts from being read.
                self.guarded(Self::read_due)?;
                continue;
            }
            let due = self.documents.values().filter_map(|d| d.due).min();
            let rest = due.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()));
            let receiver = self.receiver.clone();
            let events = self.events.1.clone();
            select! {
                recv(receiver) -> message => self.receive(message.map_err(|_| Gone)?)?,
                recv(events) -> event => {
                    if let Ok(event) = event {
                        self.guarded(|server| server.hear(event))?;
                    }
                }
                default(rest) => {}
            }
            self.guarded(Self::read_due)?;
        }
    }

    /// A bug of ours costs what it happened in, not the session.
    fn guarded(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Gone>) -> Result<(), Gone> {
        let done = catch_unwind(AssertUnwindSafe(|| work(self)));
        done.unwrap_or_else(|_| self.log(MessageType::ERROR, BUG.to_string()))
    }

    /// Puts a message into the queue, or takes one out of it.
    fn receive(&mut self, message: Message) -> Result<(), Gone> {
        let cancelled = match &message {
            Message::Notification(note) if note.method == Cancel::METHOD => {
                let params = serde_json::from_value::<CancelParams>(note.params.clone());
                params.ok().map(|params| match params.id {
                    NumberOrString::Number(id) => RequestId::from(id),
                    NumberOrString::String(id) => RequestId::from(id),
                })
            }
            _ => None,
        };
        let Some(id) = cancelled else {
            self.queue.push_back(message);
            return Ok(());
        };
        let is_it = |m: &Message| matches!(m, Message::Request(request) if request.id == id);
        if let Some(at) = self.queue.iter().position(is_it) {
            self.queue.remove(at);
            let failure = Failure::new(ErrorCode::RequestCanceled, "cancelled by the client");
            return self.respond(id, Err(failure));
        }
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<(), Gone> {
        let id = request.id.clone();
        if self.is_shut_down {
            let failure = Failure::new(ErrorCode::InvalidRequest, "the server was shut down");
            return self.respond(id, Err(failure));
        }
        if request.method == Shutdown::METHOD {
            self.is_shut_down = true;
            self.documents.clear();
            return self.respond(id, Ok(serde_json::Value::Null));
        }
        let answered = catch_unwind(AssertUnwindSafe(|| answer(self, request)));
        let answered =
            answered.unwrap_or_else(|_| Err(Failure::new(ErrorCode::InternalError, BUG)));
        self.respond(id, answered)
    }

    fn respond(
        &self,
        id: RequestId,
        result: Result<serde_json::Value, Failure>,
    ) -> Result<(), Gone> {
        let response = match result {
            Ok(value) => Response::new_ok(id, value),
            Err(failure) => Response::new_err(id, failure.code as i32, failure.message),
        };
        self.sender.send(response.into()).map_err(|_| Gone)
    }

    fn notify<N: lsp_types::notification::Notification>(
        &self,
        params: N::Params,
    ) -> Result<(), Gone> {
        let note = Notification::new(N::METHOD.to_string(), params);
        self.sender.send(note.into()).map_err(|_| Gone)
    }

    fn log(&self, typ: MessageType, message: String) -> Result<(), Gone> {
        self.notify::<LogMessage>(LogMessageParams { typ, message })
    }

    fn notification(&mut self, note: Notification) -> Result<(), Gone> {
        let method = note.method.clone();
        let taken = match method.as_str() {
            DidOpenTextDocument::METHOD => read(note).map(|params| self.open(params)),
            DidChangeTextDocument::METHOD => read(note).map(|params| self.change(params)),
            DidCloseTextDocument::METHOD => read(note).map(|params| self.close(params)),
            // Saving changes nothing, and notifications that are not known may be left out.
            _ => return Ok(()),
        };
        match taken {
            Ok(done) => done,
            Err(error) => self.log(MessageType::ERROR, format!("{method}: {error}")),
        }
    }

    fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    fn open(&mut self, params: DidOpenTextDocumentParams) -> Result<(), Gone> {
        let item = params.text_document;
        let generation = self.next_generation();
        let key = item.uri.as_str().to_string();
        let document = Document::new(
            item.uri,
            item.version,
            &item.text,
            self.encoding,
            generation,
        );
        self.documents.insert(key, document);
        self.read_due()
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) -> Result<(), Gone> {
        let generation = self.next_generation();
        let (encoding, due) = (self.encoding, Instant::now() + self.options.debounce);
        let id = params.text_document;
        match self.documents.get_mut(id.uri.as_str()) {
            Some(document) => {
                document.change(
                    id.version,
                    &params.content_changes,
                    encoding,
                    generation,
                    due,
                );
                Ok(())
            }
            None => self.log(
                MessageType::ERROR,
                format!("{} changed and is not open", id.uri.as_str()),
            ),
        }
    }

    /// The editor forgets what was said of a text that is closed.
    fn close(&mut self, params: DidCloseTextDocumentParams) -> Result<(), Gone> {
        let uri = params.text_document.uri;
        match self.documents.remove(uri.as_str()) {
            Some(_) => self.publish(uri, Vec::new(), None),
            None => Ok(()),
        }
    }

    fn publish(
        &self,
        uri: Uri,
        diagnostics: Vec<lsp_types::Diagnostic>,
        version: Option<i32>,
    ) -> Result<(), Gone> {
        self.notify::<PublishDiagnostics>(PublishDiagnosticsParams {
            uri,
            diagnostics,
            version,
        })
    }

    /// Reads the texts that have rested.
    fn read_due(&mut self) -> Result<(), Gone> {
        let now = Instant::now();
        let is_due = |d: &Document| d.due.is_some_and(|due| due <= now);
        let due: Vec<String> = (self.documents.iter())
            .filter(|(_, document)| is_due(document))
            .map(|(key, _)| key.clone())
            .collect();
        for key in due {
            self.read(&key)?;
        }
        Ok(())
    }

    /// Mistakes of syntax are said at once, all others when the thread of the document has them.
    fn read(&mut self, key: &str) -> Result<(), Gone> {
        let Some(document) = self.documents.get_mut(key) else {
            return Ok(());
        };
        document.due = None;
        let snapshot = document.snapshot();
        if !snapshot.errors.is_empty() {
            return self.publish_document(key);
        }
        if document.may_start_job() {
            self.start_job(key);
        }
        Ok(())
    }

    fn start_job(&mut self, key: &str) {
        let Some(document) = self.documents.get_mut(key) else {
            return;
        };
        let stamp = Stamp {
            document: key.to_string(),
            generation: document.generation,
        };
        let snapshot = document.snapshot();
        let (cache, sender) = (Arc::clone(&document.cache), self.events.0.clone());
        document.job = Job::start(stamp, snapshot, cache, sender);
    }

    fn publish_document(&mut self, key: &str) -> Result<(), Gone> {
        let Some(document) = self.documents.get_mut(key) else {
            return Ok(());
        };
        let (uri, version) = (document.uri.clone(), document.version);
        let (lines, text) = (document.lines.clone(), Arc::clone(&document.text));
        let placed = document.diagnostics();
        let diagnostics = (placed.iter())
            .map(|placed| self.reporter.report(placed, &uri, &text, &lines))
            .collect();
        self.publish(uri, diagnostics, Some(version))
    }

    /// Takes what a thread says, if it is about a text that is still there.
    fn hear(&mut self, event: Event) -> Result<(), Gone> {
        let key = event.stamp.document;
        let finish = match event.news {
            News::Finished(finish) => Some(finish),
            _ => None,
        };
        if finish == Some(Finish::Bug) {
            let what = format!("{key}: a bug of systola ended the checks of this file");
            self.log(MessageType::ERROR, what)?;
        }
        let Some(document) = self.documents.get_mut(&key) else {
            return Ok(());
        };
        if event.stamp.generation == document.generation {
            if document.hear(event.news) {
                self.publish_document(&key)?;
            }
            return Ok(());
        }
        // A thread that was given up has ended: the next one may begin.
        if finish.is_some() && document.ended(event.stamp.generation) {
            let is_read = document.due.is_none();
            if is_read && document.may_start_job() && document.snapshot().errors.is_empty() {
                self.start_job(&key);
            }
        }
        Ok(())
    }

    pub fn document(&mut self, uri: &Uri) -> Result<&mut Document, Failure> {
        let known = self.documents.get_mut(uri.as_str());
        known.ok_or_else(|| {
            let what = format!("{} is not open", uri.as_str());
            Failure::new(ErrorCode::InvalidParams, what)
        })
    }
}

fn read<P: serde::de::DeserializeOwned>(note: Notification) -> Result<P, serde_json::Error> {
    serde_json::from_value(note.params)
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                ..TextDocumentSyncOptions::default()
            },
        )),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some(vec![".".to_string()]),
            ..CompletionOptions::default()
        }),
        definition_provider: Some(OneOf::Left(true)),
        references_provider: Some(OneOf::Left(true)),
        document_highlight_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        rename_provider: Some(OneOf::Right(RenameOptions {
            prepare_provider: Some(true),
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })),
        ..ServerCapabilities::default()
    }
}
