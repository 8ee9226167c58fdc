//! What requests are answered with.

use lsp_server::{ErrorCode, Request};
use lsp_types::request::{
    Completion, DocumentHighlightRequest, DocumentSymbolRequest, Formatting, GotoDefinition,
    HoverRequest, PrepareRenameRequest, References, Rename, Request as _,
};
use lsp_types::{TextDocumentPositionParams, Uri};

use crate::document::Document;
use crate::server::Server;
use crate::{completion, formatting, hover, navigation, rename, symbols};

/// Why a request is not answered.
#[derive(Debug)]
pub struct Failure {
    pub code: ErrorCode,
    pub message: String,
}

impl Failure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Failure {
        Failure {
            code,
            message: message.into(),
        }
    }
}

/// The answer to any request but `shutdown`.
pub fn answer(server: &mut Server, request: Request) -> Result<serde_json::Value, Failure> {
    let method = request.method.clone();
    match method.as_str() {
        HoverRequest::METHOD => on::<HoverRequest>(request, |params| {
            let (document, offset) = place(server, &params.text_document_position_params)?;
            Ok(hover::hover(document, offset))
        }),
        GotoDefinition::METHOD => on::<GotoDefinition>(request, |params| {
            let (document, offset) = place(server, &params.text_document_position_params)?;
            Ok(navigation::definition(document, offset))
        }),
        References::METHOD => on::<References>(request, |params| {
            let with_declarations = params.context.include_declaration;
            let (document, offset) = place(server, &params.text_document_position)?;
            Ok(navigation::references(document, offset, with_declarations))
        }),
        DocumentHighlightRequest::METHOD => on::<DocumentHighlightRequest>(request, |params| {
            let (document, offset) = place(server, &params.text_document_position_params)?;
            Ok(navigation::highlights(document, offset))
        }),
        PrepareRenameRequest::METHOD => on::<PrepareRenameRequest>(request, |params| {
            let (document, offset) = place(server, &params)?;
            rename::prepare(document, offset).map(Some)
        }),
        Rename::METHOD => on::<Rename>(request, |params| {
            let (document, offset) = place(server, &params.text_document_position)?;
            rename::rename(document, offset, &params.new_name).map(Some)
        }),
        DocumentSymbolRequest::METHOD => on::<DocumentSymbolRequest>(request, |params| {
            let nested = server.reporter.nested_symbols;
            let document = server.document(&params.text_document.uri)?;
            Ok(Some(symbols::symbols(document, nested)))
        }),
        Completion::METHOD => on::<Completion>(request, |params| {
            let (document, offset) = place(server, &params.text_document_position)?;
            Ok(Some(completion::complete(document, offset)))
        }),
        Formatting::METHOD => on::<Formatting>(request, |params| {
            let document = server.document(&params.text_document.uri)?;
            Ok(formatting::format(document))
        }),
        _ => Err(Failure::new(
            ErrorCode::MethodNotFound,
            format!("`{method}` is not supported"),
        )),
    }
}

fn on<R: lsp_types::request::Request>(
    request: Request,
    work: impl FnOnce(R::Params) -> Result<R::Result, Failure>,
) -> Result<serde_json::Value, Failure> {
    let params: R::Params = serde_json::from_value(request.params)
        .map_err(|error| Failure::new(ErrorCode::InvalidParams, error.to_string()))?;
    let result = work(params)?;
    serde_json::to_value(result)
        .map_err(|error| Failure::new(ErrorCode::InternalError, error.to_string()))
}

fn place<'s>(
    server: &'s mut Server,
    params: &TextDocumentPositionParams,
) -> Result<(&'s mut Document, usize), Failure> {
    let uri: &Uri = &params.text_document.uri;
    let document = server.document(uri)?;
    let offset = document.lines.offset(&document.text, params.position);
    Ok((document, offset))
}
