// SPDX-License-Identifier: MIT
//! names [N]: calls through functions whose names Rust mangles, down to a system call.
use std::arch::asm;

mod deep {
    pub trait Work {
        fn work(&self, n: i64) -> i64;
    }
    pub struct Thing(pub i64);
    impl Work for Thing {
        #[inline(never)]
        fn work(&self, n: i64) -> i64 {
            super::inner(n) + self.0
        }
    }
}

#[inline(never)]
fn inner(n: i64) -> i64 {
    let result: i64;
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("syscall", inlateout("rax") 110i64 => result, out("rcx") _, out("r11") _);
        #[cfg(target_arch = "aarch64")]
        asm!("svc 0", in("x8") 173i64, lateout("x0") result);
    }
    result + n
}

#[inline(never)]
fn generic<T: deep::Work>(thing: &T, n: i64) -> i64 {
    thing.work(n) * 3
}

fn main() {
    let nr: i64 = std::env::args().nth(1).map_or(1, |text| text.parse().unwrap());
    let mut sum = 0;
    for i in 0..nr {
        sum += generic(&deep::Thing(i), std::hint::black_box(i));
    }
    std::process::exit((sum == 42) as i32);
}
