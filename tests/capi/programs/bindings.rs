// A Rust program with bindings of its own, as a tensor library has them: storage that is freed when the last tensor of it
// goes, a stream per device, and calls from several threads.
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::Arc;

type Status = c_int;
type Plan = unsafe extern "C" fn(*const c_void, *mut c_void, *mut u64, *mut *mut c_void) -> Status;
type Run = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, *mut c_void) -> Status;

extern "C" {
    fn aclInit(path: *const c_char) -> Status;
    fn aclFinalize() -> Status;
    fn aclrtCreateStream(stream: *mut *mut c_void) -> Status;
    fn aclrtDestroyStream(stream: *mut c_void) -> Status;
    fn aclrtSynchronizeStream(stream: *mut c_void) -> Status;
    fn aclrtMalloc(address: *mut *mut c_void, size: usize, policy: c_int) -> Status;
    fn aclrtFree(address: *mut c_void) -> Status;
    fn aclrtMemcpy(to: *mut c_void, room: usize, from: *const c_void, count: usize, kind: c_int) -> Status;
    fn aclGetRecentErrMsg() -> *const c_char;
    fn aclCreateTensor(
        dims: *const i64, ndim: u64, dtype: c_int, strides: *const i64, offset: i64, format: c_int,
        storage: *const i64, storage_ndim: u64, data: *mut c_void,
    ) -> *mut c_void;
    fn aclDestroyTensor(tensor: *const c_void) -> Status;
    fn aclGetViewShape(tensor: *const c_void, dims: *mut *mut i64, count: *mut u64) -> Status;
    fn aclnnFloorGetWorkspaceSize(x: *const c_void, out: *mut c_void, size: *mut u64, executor: *mut *mut c_void) -> Status;
    fn aclnnFloor(workspace: *mut c_void, size: u64, executor: *mut c_void, stream: *mut c_void) -> Status;
    fn aclnnCeilGetWorkspaceSize(x: *const c_void, out: *mut c_void, size: *mut u64, executor: *mut *mut c_void) -> Status;
    fn aclnnCeil(workspace: *mut c_void, size: u64, executor: *mut c_void, stream: *mut c_void) -> Status;
    fn aclnnNonzeroGetWorkspaceSize(x: *const c_void, out: *mut c_void, size: *mut u64, executor: *mut *mut c_void) -> Status;
    fn aclnnNonzero(workspace: *mut c_void, size: u64, executor: *mut c_void, stream: *mut c_void) -> Status;
}

#[derive(Debug)]
struct Error(Status, String);
type Result<T> = std::result::Result<T, Error>;

fn check(status: Status) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    let text = unsafe { aclGetRecentErrMsg() };
    let words = if text.is_null() { String::new() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned() };
    Err(Error(status, words))
}

struct Stream(*mut c_void);
unsafe impl Send for Stream {}
unsafe impl Sync for Stream {}
impl Stream {
    fn new() -> Result<Self> {
        let mut made = null_mut();
        check(unsafe { aclrtCreateStream(&mut made) })?;
        Ok(Stream(made))
    }
    fn wait(&self) -> Result<()> {
        check(unsafe { aclrtSynchronizeStream(self.0) })
    }
}
impl Drop for Stream {
    fn drop(&mut self) {
        unsafe { aclrtDestroyStream(self.0) };
    }
}

struct Storage(*mut c_void, usize);
unsafe impl Send for Storage {}
unsafe impl Sync for Storage {}
impl Storage {
    fn new(bytes: usize) -> Result<Self> {
        let mut made = null_mut();
        check(unsafe { aclrtMalloc(&mut made, bytes, 0) })?;
        Ok(Storage(made, bytes))
    }
    fn write<T>(&self, values: &[T]) -> Result<()> {
        let count = std::mem::size_of_val(values);
        check(unsafe { aclrtMemcpy(self.0, self.1, values.as_ptr().cast(), count, 1) })
    }
    fn read<T: Clone + Default>(&self, count: usize) -> Result<Vec<T>> {
        let mut found = vec![T::default(); count];
        let bytes = count * std::mem::size_of::<T>();
        check(unsafe { aclrtMemcpy(found.as_mut_ptr().cast(), bytes, self.0, bytes, 2) })?;
        Ok(found)
    }
}
impl Drop for Storage {
    fn drop(&mut self) {
        unsafe { aclrtFree(self.0) };
    }
}

/// A view: what it is of stays as long as any view does.
#[derive(Clone)]
struct Tensor {
    storage: Arc<Storage>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    dtype: c_int,
}
impl Tensor {
    fn new<T>(values: &[T], shape: &[i64], dtype: c_int) -> Result<Self> {
        let storage = Storage::new(std::mem::size_of_val(values))?;
        storage.write(values)?;
        let mut strides = vec![1; shape.len()];
        for axis in (0..shape.len().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * shape[axis + 1];
        }
        Ok(Tensor { storage: Arc::new(storage), shape: shape.to_vec(), strides, dtype })
    }
    fn transposed(&self) -> Self {
        let mut made = self.clone();
        made.shape.reverse();
        made.strides.reverse();
        made
    }
    fn described<R>(&self, work: impl FnOnce(*mut c_void) -> Result<R>) -> Result<R> {
        let reach = [self.shape.iter().zip(&self.strides).map(|(n, s)| (n - 1) * s).sum::<i64>() + 1];
        let made = unsafe {
            aclCreateTensor(
                self.shape.as_ptr(), self.shape.len() as u64, self.dtype, self.strides.as_ptr(), 0, 2,
                reach.as_ptr(), 1, self.storage.0,
            )
        };
        if made.is_null() {
            return check(-1).and_then(|_| unreachable!());
        }
        let found = work(made);
        check(unsafe { aclDestroyTensor(made) })?;
        found
    }
}

fn unary(plan: Plan, run: Run, x: &Tensor, out: &Tensor, stream: &Stream) -> Result<Vec<i64>> {
    x.described(|x| {
        out.described(|out| {
            let (mut size, mut executor) = (0u64, null_mut());
            check(unsafe { plan(x, out, &mut size, &mut executor) })?;
            let workspace = if size > 0 { Some(Storage::new(size as usize)?) } else { None };
            let address = workspace.as_ref().map_or(null_mut(), |one| one.0);
            check(unsafe { run(address, size, executor, stream.0) })?;
            stream.wait()?;
            let (mut dims, mut count) = (null_mut(), 0u64);
            check(unsafe { aclGetViewShape(out, &mut dims, &mut count) })?;
            Ok((0..count as usize).map(|k| unsafe { *dims.add(k) }).collect())
        })
    })
}

fn work(number: usize) -> Result<()> {
    let stream = Stream::new()?;
    let base = number as f32;
    for _ in 0..50 {
        let x = Tensor::new(&[base + 0.5, -1.5, 0.0, 2.0, base, 3.25], &[2, 3], 0)?;
        let out = Tensor::new(&[0f32; 6], &[3, 2], 0)?;
        unary(aclnnCeilGetWorkspaceSize, aclnnCeil, &x.transposed(), &out, &stream)?;
        assert_eq!(out.storage.read::<f32>(6)?, [base + 1.0, 2.0, -1.0, base, 0.0, 4.0]);
        unary(aclnnFloorGetWorkspaceSize, aclnnFloor, &x, &x, &stream)?;
        assert_eq!(x.storage.read::<f32>(6)?, [base, -2.0, 0.0, 2.0, base, 3.0]);
    }
    Ok(())
}

fn main() -> Result<()> {
    check(unsafe { aclInit(null()) })?;
    let threads: Vec<_> = (1..5).map(|number| std::thread::spawn(move || work(number))).collect();
    for one in threads {
        one.join().unwrap()?;
    }
    let stream = Stream::new()?;
    let x = Tensor::new(&[0f32, 2.0, 0.0, 4.0], &[4], 0)?;
    let places = Tensor::new(&[-1i64; 4], &[4, 1], 9)?;
    assert_eq!(unary(aclnnNonzeroGetWorkspaceSize, aclnnNonzero, &x, &places, &stream)?, [2, 1]);
    assert_eq!(places.storage.read::<i64>(2)?, [1, 3]);
    let Error(status, words) = unary(aclnnCeilGetWorkspaceSize, aclnnCeil, &x, &places, &stream).unwrap_err();
    assert!(status == 161002 && words.contains("out"), "{status} {words}");
    drop(stream);
    check(unsafe { aclFinalize() })
}
