use std::time::Duration;

use super::call_figures::FigureOutcome;
use super::*;

const SLOT: Duration = Duration::from_secs(SLOT_SECONDS as u64);

fn name(name: &str) -> ServerName {
    ServerName::parse(name).unwrap()
}

fn count(figures: &CallFigures, micros: u64, outcome: FigureOutcome) {
    figures.count(Instant::now(), Duration::from_micros(micros), outcome, 100);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_slot_become_one_point_when_it_is_over() {
    let hub = HubFigures::default();
    let git = hub.of_server(&name("git"));
    for micros in [1_000, 2_000, 900_000] {
        count(&git, micros, FigureOutcome::Ok);
    }
    count(&git, 5_000, FigureOutcome::Error);
    count(&git, 5_000, FigureOutcome::Cancelled);
    let report = hub.report(None);
    assert_eq!((report.slot, report.all.points.len()), (0, 0), "the slot is not over");
    tokio::time::advance(SLOT).await;
    let report = hub.report(None);
    let [(_, git)] = &report.servers[..] else { panic!("{report:?}") };
    let [point] = &git.points[..] else { panic!("{git:?}") };
    assert_eq!((point.slot, point.calls, point.errors, point.cancelled), (0, 4, 1, 1));
    assert_eq!((git.calls, git.errors, git.result_bytes, point.result_bytes), (4, 1, 400, 400));
    let near = |shown: u64, micros: u64| shown.abs_diff(micros) * 16 <= micros;
    assert!(near(point.p50_micros, 2_000) && near(point.p99_micros, 900_000), "{point:?}");
    assert_eq!((git.recent.calls, git.recent.errors, git.recent.seconds), (4, 1, 10));
    assert_eq!(report.all.points, git.points, "the calls count for all servers too");
    assert!(hub.report(Some(0)).all.points.is_empty(), "a reader gets each point once");
    tokio::time::advance(SLOT * (RECENT_POINTS + 1)).await;
    let later = hub.report(None);
    assert_eq!((later.all.recent.calls, later.all.recent.p99_micros, later.all.points.len()), (0, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn points_of_a_server_are_bounded_at_any_rate() {
    let hub = HubFigures::default();
    let git = hub.of_server(&name("git"));
    for slot in 0..2 * u64::from(MAX_POINTS) {
        for micros in 0..40 {
            count(&git, micros << (slot % 30), FigureOutcome::Ok);
        }
        tokio::time::advance(SLOT).await;
    }
    let report = hub.report(None);
    let most = usize::try_from(MAX_POINTS).unwrap();
    assert!(report.all.points.len() <= most && report.all.points.len() > most - 2);
    assert_eq!(report.all.calls, 40 * 2 * u64::from(MAX_POINTS), "the sum stays");
    tokio::time::advance(SLOT * (MAX_POINTS + 1)).await;
    assert!(hub.report(None).all.points.is_empty(), "an hour later");
    hub.retain(|_| false);
    assert!(hub.report(None).servers.is_empty());
}

#[test]
fn every_call_counts_once_while_points_are_taken() {
    const CALLS: u64 = 20_000;
    let hub = HubFigures::default();
    let figures = [hub.of_server(&name("a")), hub.of_server(&name("b"))];
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for (at, figures) in figures.iter().enumerate() {
            for _ in 0..2 {
                scope.spawn(move || {
                    for call in 0..CALLS {
                        let now = begin + SLOT * u32::try_from(call / 100).unwrap();
                        let outcome = if at == 0 { FigureOutcome::Ok } else { FigureOutcome::Error };
                        figures.count(now, Duration::from_millis(1), outcome, 0);
                    }
                });
            }
        }
    });
    let last = u32::try_from(CALLS / 100).unwrap() + 1;
    let [a, b] = figures.map(|figures| figures.report(last, None));
    let all = hub.all.report(last, None);
    assert_eq!((a.calls, a.errors, b.calls, b.errors), (2 * CALLS, 0, 2 * CALLS, 2 * CALLS));
    assert_eq!((all.calls, all.errors), (4 * CALLS, 2 * CALLS));
}
