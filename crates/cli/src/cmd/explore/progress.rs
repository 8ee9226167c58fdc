//! The progress bar of a search, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use systola_explore::session::Event;

use crate::execute::duration;

/// Hidden where there is no terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    pub fn new(budget: Duration) -> Bar {
        let bar = ProgressBar::new(1);
        let style = format!("{{bar:24}} {{pos}}/{{len}}  {{elapsed}} of {budget:.0?}  {{msg}}");
        if let Ok(style) = ProgressStyle::with_template(&style) {
            bar.set_style(style);
        }
        Bar { bar }
    }

    pub fn begin(&self) {
        self.bar.enable_steady_tick(Duration::from_millis(200));
        self.bar.set_message("candidates are written");
    }

    pub fn on_event(&self, event: Event<'_>) {
        match event {
            Event::Ranking { candidates } => {
                self.bar
                    .set_message(format!("{candidates} candidates are lowered and ranked"));
            }
            Event::Ranked { candidates } => {
                self.bar.set_length(candidates as u64);
                self.bar
                    .set_message(format!("{candidates} designs; the first are compiled"));
            }
            Event::Measured { progress, best } => {
                self.bar.set_length(progress.wanted as u64);
                self.bar.set_position(progress.tried as u64);
                if let Some((name, seconds)) = best {
                    self.bar
                        .set_message(format!("best: {name}, {}", duration(seconds)));
                }
            }
        }
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}
