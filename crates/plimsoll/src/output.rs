//! The result: to stdout in the form that was asked for, to an HTML file, and as an exit code.

use std::io::Write as _;
use std::path::Path;

use plimsoll_model::text::printable;
use plimsoll_report::glance::Glance;
use plimsoll_report::{Layout, ReportError, RunReport, Style};
use plimsoll_store::RunDir;

use crate::args::OutputArgs;
use crate::fault::Fault;
use crate::{hand_out, out_file};

impl From<ReportError> for Fault {
    fn from(e: ReportError) -> Self {
        match e {
            ReportError::Store(e) => e.into(),
            ReportError::Json(e) => Fault::bug(format!("the report's data cannot be written: {e}")),
            e @ (ReportError::Group(_) | ReportError::Column { .. }) => {
                Fault::input(e.to_string(), "See `plimsoll report --help`.")
            }
        }
    }
}

/// Reads the runs and prints them.
pub fn print_runs(dirs: &[RunDir], layout: Layout<'_>, output: &OutputArgs) -> Result<Vec<RunReport>, Fault> {
    let reports = dirs.iter().map(|d| plimsoll_report::read(d, dirs.len())).collect::<Result<Vec<_>, _>>()?;
    for gap in reports.iter().flat_map(|r| &r.gaps) {
        tell(format_args!("plimsoll: {gap}"));
    }
    let written = output.html.as_ref().map_or(Ok(()), |file| write_html(Path::new(file), &reports, layout));
    // What was measured is told, whatever becomes of the file.
    print(&rendered(&reports, layout, output))?;
    written?;
    hand_out::write(dirs, &reports, &output.hand_out)?;
    Ok(reports)
}

/// A run that has just ended: what is asked first, unless more or another form was asked for.
pub fn print_glance(dir: &RunDir, output: &OutputArgs) -> Result<(), Fault> {
    if output.json || output.markdown || output.csv || output.oneline || output.verbose {
        return print_runs(std::slice::from_ref(dir), Layout::default(), output).map(drop);
    }
    let report = plimsoll_report::read(dir, 1)?;
    for gap in &report.gaps {
        tell(format_args!("plimsoll: {gap}"));
    }
    let written = write_report(&report, output);
    print(&Glance::of(&report).terminal(&report, Style::for_stdout()))?;
    written?;
    hand_out::write(std::slice::from_ref(dir), &[report], &output.hand_out)
}

/// What was asked for beside what is printed: the report file, and results for other programs.
pub fn write_beside(dir: &RunDir, output: &OutputArgs) -> Result<(), Fault> {
    if output.html.is_none() && !hand_out::is_asked(&output.hand_out) {
        return Ok(());
    }
    let report = plimsoll_report::read(dir, 1)?;
    write_report(&report, output)?;
    hand_out::write(std::slice::from_ref(dir), &[report], &output.hand_out)
}

/// The report file of a run, where one was asked for.
pub fn write_report(report: &RunReport, output: &OutputArgs) -> Result<(), Fault> {
    let Some(file) = &output.html else { return Ok(()) };
    write_html(Path::new(file), std::slice::from_ref(report), Layout::default())
}

fn rendered(reports: &[RunReport], layout: Layout<'_>, output: &OutputArgs) -> String {
    if output.json {
        plimsoll_report::json(reports)
    } else if output.markdown {
        plimsoll_report::markdown(reports, layout)
    } else if output.csv {
        point_to_tables(reports);
        plimsoll_report::csv(reports)
    } else if output.oneline {
        reports.iter().map(plimsoll_report::export::one_line).collect()
    } else {
        plimsoll_report::terminal(reports, layout, Style::for_stdout())
    }
}

/// A CSV is one table, of lines of results: where the other tables are.
fn point_to_tables(reports: &[RunReport]) {
    let any = |has: fn(&RunReport) -> bool| reports.iter().any(has);
    let ids = reports.iter().map(|r| r.summary.id.as_str()).collect::<Vec<_>>().join(" ");
    for (what, there) in
        [("agents", any(|r| !r.summary.agents.is_empty())), ("servers", any(|r| r.summary.servers.is_some()))]
    {
        if there {
            tell(format_args!("plimsoll: {what}: `plimsoll runs export {ids} --what {what} --format csv`"));
        }
    }
}

pub fn write_html(file: &Path, reports: &[RunReport], layout: Layout<'_>) -> Result<(), Fault> {
    let page = plimsoll_report::html(reports, layout)?;
    out_file::write(file, page.as_bytes())?;
    tell(format_args!("plimsoll: report in {}", file.display()));
    Ok(())
}

/// A line for the person who watches, on stderr. Who has closed it (a terminal that went away, `2>&1 | head`) is no reason to
/// die in the middle of a run.
pub fn tell(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", printable(&line.to_string(), false));
}

/// The same of a text with its own ends of lines.
pub fn tell_whole(text: &str) {
    let _ = std::io::stderr().lock().write_all(printable(text, false).as_bytes());
}

/// Everything that goes to stdout goes through here. A reader that went away (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Fault> {
    let text = printable(text, Style::for_stdout().colour);
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Fault::input(
            format!("the result cannot be written to stdout: {e}"),
            "Check where stdout is directed.",
        )),
        _ => Ok(()),
    }
}
