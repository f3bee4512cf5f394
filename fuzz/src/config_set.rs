//! Text from a user's configuration file.

use sshflow::config::{Config, PARAMETERS};

use super::input::Input;

/// For each setting a byte that picks the key, and two lengths with text.
pub fn config_set(data: &[u8]) {
    let mut input = Input::new(data);
    let mut config = Config::new();
    while !input.is_empty() {
        let known = usize::from(input.byte());
        let len = usize::from(input.byte());
        let text = String::from_utf8_lossy(input.bytes(len)).into_owned();
        match PARAMETERS.get(known % (PARAMETERS.len() + 1)) {
            Some(parameter) => set(&mut config, parameter.key, &text),
            None => {
                let len = usize::from(input.byte());
                let key = String::from_utf8_lossy(input.bytes(len)).into_owned();
                set(&mut config, &key, &text);
            }
        }
        let number = input.u64() as i64;
        let key = PARAMETERS[known % PARAMETERS.len()].key;
        let before = values(&config);
        if config.set_int(key, number).is_ok() {
            assert_eq!(config.get_int(key), Ok(number));
        } else {
            assert_eq!(values(&config), before);
        }
    }
}

fn values(config: &Config) -> Vec<i64> {
    let get = |parameter: &sshflow::config::Parameter| config.get_int(parameter.key).unwrap();
    PARAMETERS.iter().map(get).collect()
}

fn set(config: &mut Config, key: &str, text: &str) {
    let before = values(config);
    if config.set(key, text).is_err() {
        assert_eq!(values(config), before, "a refused value changes nothing");
        return;
    }
    // What it reads back as leads to the same value again, within bounds.
    let parameter = PARAMETERS.iter().find(|p| p.key == key).unwrap();
    let value = config.get_int(key).unwrap();
    assert!(parameter.accepts(value));
    let again = config.get(key).unwrap();
    assert!(again.len() < 32);
    config.set(key, &again).unwrap();
    assert_eq!(config.get_int(key), Ok(value));
}
