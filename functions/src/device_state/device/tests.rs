use super::*;
use fencepost::json;
use std::time::SystemTime;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from(SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_877_600 + seconds))
}

fn object(text: &str) -> Object {
    Object::new(json::parse(text.as_bytes()).expect("JSON"), "").expect("an object")
}

fn number(text: &str) -> Decimal {
    Decimal::parse(text).expect("a number")
}

fn device(state: &str) -> Device {
    Device {
        status: Status::Online,
        state: object(state),
        config: object(r#"{"fadeMs":200}"#),
        created_at: at(0),
        updated_at: at(0),
        config_updated_at: None,
    }
}

fn adjust(state: &str, by: &str, limits: [Option<&str>; 2], on_limit: OnLimit) -> Result<Option<Device>, Refusal> {
    let [min, max] = limits.map(|limit| limit.map(number));
    let adjustment = Adjustment { attribute: "n".to_owned(), by: number(by), min, max, on_limit };
    decide_adjust(&device(state), &adjustment, at(9))
}

fn state_after(decision: Result<Option<Device>, Refusal>) -> String {
    match decision {
        Ok(Some(device)) => {
            assert_eq!(device.updated_at, at(9));
            serde_json::to_string(&device.state).expect("JSON")
        }
        other => panic!("expected a write, not {other:?}"),
    }
}

#[test]
fn a_patch_changes_what_it_names_and_moves_updated_at() {
    let decision = decide_patch(&device(r#"{"a":1,"b":{"c":1,"d":2}}"#), &object(r#"{"a":null,"b":{"c":3}}"#), at(9));
    assert_eq!(state_after(decision), r#"{"b":{"c":3,"d":2}}"#);
}

#[test]
fn a_patch_that_changes_nothing_writes_nothing() {
    for patch in ["{}", r#"{"a":1.0}"#, r#"{"missing":null}"#, r#"{"b":{}}"#] {
        assert_eq!(decide_patch(&device(r#"{"a":1,"b":{}}"#), &object(patch), at(9)), Ok(None), "{patch}");
    }
}

#[test]
fn an_adjustment_is_exact_to_38_digits() {
    let most = "1234567890123456789012345678901234567";
    let decision = adjust(&format!(r#"{{"n":{most}8}}"#), "1", [None, None], OnLimit::Refuse);
    assert_eq!(state_after(decision), format!(r#"{{"n":{most}9}}"#));
    assert_eq!(state_after(adjust(r#"{"n":0.1}"#, "0.2", [None, None], OnLimit::Refuse)), r#"{"n":0.3}"#);
}

#[test]
fn a_result_beyond_38_digits_is_refused_unless_a_clamp_ends_at_a_limit() {
    let refused = Err(Refusal::NotRepresentable);
    assert_eq!(adjust(r#"{"n":1e100}"#, "1", [None, None], OnLimit::Refuse), refused);
    assert_eq!(adjust(r#"{"n":1e100}"#, "1", [Some("0"), None], OnLimit::Clamp), refused);
    let clamped = adjust(r#"{"n":1e100}"#, "1", [None, Some("50")], OnLimit::Clamp);
    assert_eq!(state_after(clamped), r#"{"n":50}"#);
}

#[test]
fn a_limit_refuses_with_what_is_there_or_moves_the_result() {
    let limits = [Some("0"), Some("100")];
    assert_eq!(state_after(adjust(r#"{"n":99}"#, "1", limits, OnLimit::Refuse)), r#"{"n":100}"#);
    let refused = Err(Refusal::LimitReached { current: number("99") });
    assert_eq!(adjust(r#"{"n":99}"#, "1.5", limits, OnLimit::Refuse), refused);
    assert_eq!(state_after(adjust(r#"{"n":99}"#, "5", limits, OnLimit::Clamp)), r#"{"n":100}"#);
    assert_eq!(state_after(adjust(r#"{"n":-50}"#, "1", limits, OnLimit::Clamp)), r#"{"n":0}"#);
    assert_eq!(adjust(r#"{"n":100}"#, "5", limits, OnLimit::Clamp), Ok(None));
}

#[test]
fn only_a_number_can_be_adjusted_and_its_name_is_literal() {
    for state in ["{}", r#"{"n":"1"}"#, r#"{"n":null}"#, r#"{"m":{"n":1}}"#] {
        let decision = adjust(state, "1", [None, None], OnLimit::Clamp);
        assert_eq!(decision, Err(Refusal::NotANumber), "{state}");
    }
}

#[test]
fn adding_nothing_writes_nothing() {
    assert_eq!(adjust(r#"{"n":5}"#, "0", [None, None], OnLimit::Refuse), Ok(None));
}

#[test]
fn the_same_status_again_writes_nothing() {
    assert_eq!(decide_status(&device("{}"), Status::Online, at(9)), Ok(None));
    let Ok(Some(next)) = decide_status(&device("{}"), Status::Offline, at(9)) else { panic!("expected a write") };
    assert_eq!((next.status, next.updated_at), (Status::Offline, at(9)));
}

#[test]
fn an_offline_device_is_not_configured_whatever_else_is_wrong() {
    let mut offline = device("{}");
    offline.status = Status::Offline;
    offline.config_updated_at = Some(at(8));
    for config in ["{}", r#"{"fadeMs":200}"#] {
        let decision = decide_config(&offline, &object(config), Duration::from_mins(5), at(9));
        assert_eq!(decision, Err(Refusal::Offline));
    }
}

#[test]
fn creation_does_not_start_the_interval_but_a_change_does() {
    let interval = Duration::from_mins(5);
    let config = object(r#"{"fadeMs":100}"#);
    let Ok(Some(changed)) = decide_config(&device("{}"), &config, interval, at(1)) else { panic!("expected a write") };
    assert_eq!((changed.config_updated_at, changed.updated_at), (Some(at(1)), at(1)));
    let again = |now| decide_config(&changed, &object("{}"), interval, now);
    let wait = |seconds| Err(Refusal::ChangedTooRecently { wait: Duration::from_secs(seconds) });
    assert_eq!(again(at(1)), wait(300));
    assert_eq!(again(at(300)), wait(1));
    assert!(matches!(again(at(301)), Ok(Some(_))));
    assert_eq!(again(at(0)), wait(301), "a clock that is behind waits longer, never less");
}

#[test]
fn the_same_config_again_is_no_change_and_is_not_too_recent() {
    let mut changed = device("{}");
    changed.config_updated_at = Some(at(8));
    let same = object(r#"{"fadeMs":2e2}"#);
    assert_eq!(decide_config(&changed, &same, Duration::from_mins(5), at(9)), Ok(None));
}

#[test]
fn a_device_comes_back_from_its_attributes_as_it_was() {
    let mut device = device(r#"{"n":12345678901234567890123456789012345678,"big":1e+100,"list":[null,{"a":true}]}"#);
    assert_eq!(Device::decode(&device.encode().expect("attributes")).expect("a device"), device);
    device.config_updated_at = Some(at(5));
    let attributes = device.encode().expect("attributes");
    assert!(attributes.keys().all(|name| Device::ATTRIBUTES.contains(&name.as_str())));
    assert_eq!(attributes.len(), Device::ATTRIBUTES.len());
    assert_eq!(Device::decode(&attributes).expect("a device"), device);
}

#[test]
fn every_refusal_has_the_code_of_the_contract() {
    for (refusal, code) in [
        (Refusal::LimitReached { current: number("99") }, "limit_reached"),
        (Refusal::NotANumber, "not_a_number"),
        (Refusal::NotRepresentable, "not_representable"),
        (Refusal::Offline, "device_offline"),
        (Refusal::ChangedTooRecently { wait: Duration::from_secs(1) }, "changed_too_recently"),
    ] {
        assert_eq!(Problem::from(refusal).code(), code);
    }
}

#[test]
fn a_state_with_too_many_values_is_not_written_and_can_be_made_smaller() {
    let members = |count: usize| (0..count).map(|number| format!(r#""{number}":0"#)).collect::<Vec<_>>().join(",");
    let full = format!("{{{}}}", members(MAX_VALUES));
    let refused = Err(Refusal::TooManyValues);
    assert_eq!(decide_patch(&device(&full), &object(r#"{"one more":{}}"#), at(9)), refused);
    assert!(matches!(decide_patch(&device(&full), &object(r#"{"0":null,"one":1}"#), at(9)), Ok(Some(_))));
    // A row of another program, or of an earlier release.
    let stored = Object::new(
        serde_json::from_str(&format!(r#"{{"n":1,"old":{{{}}}}}"#, members(MAX_VALUES))).expect("JSON"),
        "",
    );
    let mut large = device("{}");
    large.state = stored.expect("an object");
    assert_eq!(decide_patch(&large, &object(r#"{"n":2}"#), at(9)), refused);
    assert_eq!(decide_patch(&large, &object(r#"{"n":1}"#), at(9)), Ok(None));
    assert_eq!(state_after(decide_patch(&large, &object(r#"{"old":null}"#), at(9))), r#"{"n":1}"#);
    assert!(matches!(decide_status(&large, Status::Offline, at(9)), Ok(Some(_))));
}

#[test]
fn the_difference_of_two_devices_is_that_of_their_attributes() {
    let states = ["{}", r#"{"a":1}"#, r#"{"a":1e30}"#, r#"{"a":1e30,"b":[]}"#];
    let devices = states.iter().flat_map(|state| {
        let configured = Device { config: object("{}"), config_updated_at: Some(at(1)), ..device(state) };
        [device(state), Device { status: Status::Offline, ..device(state) }, configured]
    });
    let devices: Vec<_> = devices.collect();
    for (old, new) in devices.iter().flat_map(|old| devices.iter().map(move |new| (old, new))) {
        let whole = Diff::between(&old.encode().expect("attributes"), new.encode().expect("attributes"));
        assert_eq!(Device::diff(old, new).expect("a difference"), whole);
    }
}
