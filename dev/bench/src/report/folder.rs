//! [`Folder`]: the files of a report. Each is either the one before or the new one, never half of it.

use super::sections::FILES;
use super::{csv, page};
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a report.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Creates the folder. Removes the tables and plots of an earlier report, and nothing else.
    ///
    /// # Errors
    /// It cannot be created or changed. Name another one.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        for file in FILES {
            match std::fs::remove_file(path.join(file)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(Folder(path.to_owned()))
    }

    /// The path of the page.
    #[must_use]
    pub fn page(&self) -> PathBuf {
        self.0.join("report.html")
    }

    /// Writes the page, and its tables and plots.
    ///
    /// # Errors
    /// A file cannot be written, or a plot cannot be drawn.
    pub fn write(&self, report: &page::Report) -> io::Result<()> {
        let sections = report.parts.iter().filter_map(|part| part.section.as_ref().ok());
        for section in sections {
            for table in section.tables.iter().chain(&section.samples) {
                self.put(&format!("{}.csv", table.name), &csv::of(table))?;
            }
            for plot in &section.plots {
                self.put(&format!("{}.svg", plot.name), &plot.file().map_err(io::Error::other)?)?;
            }
        }
        for table in report.about_the_run() {
            self.put(&format!("{}.csv", table.name), &csv::of(&table))?;
        }
        // The page comes last, because it names the other files.
        self.put("report.html", &page::of(report))
    }

    fn put(&self, name: &str, text: &str) -> io::Result<()> {
        let part = self.0.join(format!(".{name}.{}.part", std::process::id()));
        std::fs::write(&part, text)?;
        std::fs::rename(&part, self.0.join(name))
    }
}
