//! The file that secrets may be kept in.

use std::rc::Rc;

use firedoor_ipc::command::Reply;
use firedoor_model::{audit::What, keychain::FileKey};

use super::settings::{Outcome, text};
use crate::engine::Engine;

/// Takes what opens it, or says whether it opens.
pub async fn unlock(engine: &Rc<Engine>, key: Option<FileKey>) -> Outcome {
    let given = key.is_some();
    let secrets = engine.secrets();
    // Files are read.
    let work = move || match key {
        Some(key) => secrets.unlock(&key).map(|()| true),
        None => Ok(secrets.open().is_ok()),
    };
    let opens = tokio::task::spawn_blocking(work).await.map_err(text)?.map_err(text)?;
    if given {
        engine.commit(engine.event(What::Command { text: "the file of secrets unlocked".into() })).await;
    }
    Ok(Reply::Opens { opens })
}

/// Forgets it.
pub async fn lock(engine: &Rc<Engine>) -> Outcome {
    engine.keys.forget();
    engine.commit(engine.event(What::Command { text: "the file of secrets locked".into() })).await;
    unlock(engine, None).await
}
