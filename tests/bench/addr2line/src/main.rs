// bench-addr2line FILE ADDRESSES: resolves the addresses in a file (hexadecimal, one a line) with
// gimli's addr2line, all of them once to warm it up and then five times: in the order of the file,
// and sorted. Prints "random,sorted" in millions a second of CPU time: the middle one.
use std::time::Duration;

fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("schedstat");
    let ns = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    Duration::from_nanos(ns)
}

fn resolve(loader: &addr2line::Loader, addresses: &[u64]) -> u64 {
    let mut frames = 0;
    for &address in addresses {
        let mut found = loader.find_frames(address).expect("frames");
        while let Ok(Some(frame)) = found.next() {
            frames += 1 + frame.location.and_then(|location| location.line).unwrap_or(0) as u64 % 2;
        }
    }
    frames
}

fn measure(loader: &addr2line::Loader, addresses: &[u64]) -> f64 {
    let mut times: Vec<f64> = (0..5)
        .map(|_| {
            let start = cpu();
            std::hint::black_box(resolve(loader, addresses));
            (cpu() - start).as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    addresses.len() as f64 / times[times.len() / 2] / 1e6
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let loader = addr2line::Loader::new(&arguments[1]).expect("a file with debug information");
    let text = std::fs::read_to_string(&arguments[2]).expect("addresses");
    let mut addresses: Vec<u64> = text
        .lines()
        .map(|line| u64::from_str_radix(line, 16).expect("a hexadecimal number"))
        .collect();
    resolve(&loader, &addresses);
    let random = measure(&loader, &addresses);
    addresses.sort_unstable();
    println!("{random:.4},{:.4}", measure(&loader, &addresses));
}
