// The device `npu` for PyTorch's dispatcher: memory with counts, devices, streams, events and generators,
// kernels that only rearrange, and a fallback to PyTorch's CPU kernels that copies nothing and is counted.
// What computes is registered from Python (operators.py). Compiled at first use (building.py).

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/FuncTorchTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/_to_copy_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/library.h>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace {

constexpr auto NPU = c10::DeviceType::PrivateUse1;
constexpr int MOST_DEVICES = 16;
constexpr size_t ALIGNMENT = 64;

struct Settings {
  int devices = 1;
  size_t memory = size_t(64) << 30;
  int fallback = 0;  // 0 count, 1 warn, 2 forbid
} settings;

// --- Memory --------------------------------------------------------------------------------------

struct Counts {
  std::mutex mutex;
  int64_t blocks = 0, most_blocks = 0, blocks_made = 0, blocks_freed = 0;
  int64_t bytes = 0, most_bytes = 0, bytes_made = 0, bytes_freed = 0, ooms = 0;
};
Counts counts[MOST_DEVICES];
thread_local c10::DeviceIndex current = 0;

std::string amount(double bytes) {
  const char* units[] = {"bytes", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  char text[48];
  snprintf(text, sizeof text, "%.2f %s", bytes, units[unit]);
  return text;
}

void count_made(int index, size_t nbytes) {
  Counts& of = counts[index];
  std::lock_guard<std::mutex> lock(of.mutex);
  if (of.bytes + nbytes > settings.memory) {
    ++of.ooms;
    TORCH_CHECK_WITH(
        OutOfMemoryError, false, "NPU out of memory. Tried to allocate ", amount(nbytes), " (NPU ", index, "; ",
        amount(settings.memory), " total capacity; ", amount(of.bytes), " already allocated; ",
        amount(settings.memory - of.bytes), " free; ", amount(of.bytes), " reserved in total by PyTorch)");
  }
  of.bytes += nbytes, of.bytes_made += nbytes, ++of.blocks, ++of.blocks_made;
  of.most_bytes = std::max(of.most_bytes, of.bytes), of.most_blocks = std::max(of.most_blocks, of.blocks);
}

void count_freed(int index, size_t nbytes) {
  Counts& of = counts[index];
  std::lock_guard<std::mutex> lock(of.mutex);
  of.bytes -= nbytes, of.bytes_freed += nbytes, --of.blocks, ++of.blocks_freed;
}

struct Block {  // memory of this allocator, or a storage of the CPU whose bytes became the device's
  void* memory;
  size_t nbytes;
  int index;
  c10::DataPtr owner;
};

void free_block(void* given) {
  auto* block = static_cast<Block*>(given);
  count_freed(block->index, block->nbytes);
  if (!block->owner) free(block->memory);
  delete block;
}

c10::DataPtr allocated(size_t nbytes, int index) {
  if (!nbytes) return {nullptr, c10::Device(NPU, index)};
  count_made(index, nbytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, ALIGNMENT, nbytes)) {
    count_freed(index, nbytes);
    TORCH_CHECK_WITH(OutOfMemoryError, false, "NPU out of memory: the host has no ", amount(nbytes), " left");
  }
  auto* block = new Block{memory, nbytes, index, {}};
  return {memory, block, &free_block, c10::Device(NPU, index)};
}

c10::DataPtr adopted(c10::DataPtr owner, size_t nbytes, int index) {
  if (!nbytes) return {nullptr, c10::Device(NPU, index)};
  count_made(index, nbytes);
  void* memory = owner.get();
  auto* block = new Block{memory, nbytes, index, std::move(owner)};
  return {memory, block, &free_block, c10::Device(NPU, index)};
}

struct Allocator final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override { return allocated(nbytes, current); }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex index) override {
    Counts& of = counts[index];
    std::lock_guard<std::mutex> lock(of.mutex);
    c10::CachingDeviceAllocator::DeviceStats found{};
    c10::CachingAllocator::Stat bytes{}, blocks{};
    bytes.current = of.bytes, bytes.peak = of.most_bytes, bytes.allocated = of.bytes_made, bytes.freed = of.bytes_freed;
    blocks.current = of.blocks, blocks.peak = of.most_blocks, blocks.allocated = of.blocks_made;
    blocks.freed = of.blocks_freed;
    for (auto* all : {&found.allocated_bytes, &found.reserved_bytes, &found.active_bytes, &found.requested_bytes})
      (*all)[0] = bytes;
    for (auto* all : {&found.allocation, &found.segment, &found.active}) (*all)[0] = blocks;
    found.num_ooms = of.ooms;
    return found;
  }
  void resetAccumulatedStats(c10::DeviceIndex index) override {
    Counts& of = counts[index];
    std::lock_guard<std::mutex> lock(of.mutex);
    of.blocks_made = of.blocks_freed = of.bytes_made = of.bytes_freed = of.ooms = 0;
  }
  void resetPeakStats(c10::DeviceIndex index) override {
    Counts& of = counts[index];
    std::lock_guard<std::mutex> lock(of.mutex);
    of.most_bytes = of.bytes, of.most_blocks = of.blocks;
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex index) override {
    std::lock_guard<std::mutex> lock(counts[index].mutex);
    return {settings.memory - counts[index].bytes, settings.memory};
  }
};
Allocator& allocator() {
  static auto* one = new Allocator();
  return *one;
}

// Pinned memory is ordinary memory that is known to be pinned.
std::mutex pinned_mutex;
std::map<const char*, size_t>& pinned() {
  static auto* known = new std::map<const char*, size_t>();
  return *known;
}

struct PinnedAllocator final : c10::Allocator {
  static void release(void* memory) {
    {
      std::lock_guard<std::mutex> lock(pinned_mutex);
      pinned().erase(static_cast<char*>(memory));
    }
    free(memory);
  }
  c10::DataPtr allocate(size_t nbytes) override {
    void* memory = nullptr;
    TORCH_CHECK(!posix_memalign(&memory, ALIGNMENT, std::max<size_t>(nbytes, 1)), "the host has no memory left");
    std::lock_guard<std::mutex> lock(pinned_mutex);
    pinned()[static_cast<char*>(memory)] = std::max<size_t>(nbytes, 1);
    return {memory, memory, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }
};

bool is_pinned_memory(const void* given) {
  std::lock_guard<std::mutex> lock(pinned_mutex);
  const char* address = static_cast<const char*>(given);
  auto after = pinned().upper_bound(address);
  if (after == pinned().begin()) return false;
  --after;
  return address < after->first + after->second;
}

// --- Devices, streams, events ----------------------------------------------------------------------

void check_index(c10::DeviceIndex index) {
  TORCH_CHECK(
      index >= 0 && index < settings.devices, "Invalid device id: npu:", int(index), "; there ",
      settings.devices == 1 ? "is" : "are", " ", settings.devices, settings.devices == 1 ? " device" : " devices");
}

thread_local c10::StreamId current_streams[MOST_DEVICES] = {};
std::atomic<c10::StreamId> last_stream{0};

struct Event {
  std::chrono::steady_clock::time_point time;
};

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return NPU; }
  c10::Device exchangeDevice(c10::Device device) const override {
    auto before = getDevice();
    setDevice(device);
    return before;
  }
  c10::Device getDevice() const override { return {NPU, current}; }
  void setDevice(c10::Device device) const override {
    if (device.index() < 0) return;
    check_index(device.index());
    current = device.index();
  }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.index() >= 0 && device.index() < settings.devices) current = device.index();
  }
  c10::Stream getStream(c10::Device device) const override {
    auto index = device.index() < 0 ? current : device.index();
    check_index(index);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(NPU, index), current_streams[index]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(NPU, device.index() < 0 ? current : device.index()), 0);
  }
  c10::Stream getNewStream(c10::Device device, int = 0) const override {
    auto index = device.index() < 0 ? current : device.index();
    check_index(index);
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(NPU, index), ++last_stream);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool = false) const override { return getNewStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    auto before = getStream(stream.device());
    current_streams[stream.device_index()] = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return settings.devices; }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    if (!*event) *event = new Event();
    static_cast<Event*>(*event)->time = std::chrono::steady_clock::now();
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  double elapsedTime(void* first, void* second, const c10::DeviceIndex) const override {
    TORCH_CHECK(first && second, "Both events must be recorded before calculating elapsed time.");
    auto passed = static_cast<Event*>(second)->time - static_cast<Event*>(first)->time;
    return std::chrono::duration<double, std::milli>(passed).count();
  }
};

// --- Generators ------------------------------------------------------------------------------------

// Random numbers come from a generator of the CPU, which fallbacks are given in this one's place.
struct Generator final : c10::GeneratorImpl {
  at::Generator inner;
  Generator(c10::DeviceIndex index, at::Generator inner_)
      : c10::GeneratorImpl(c10::Device(NPU, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        inner(std::move(inner_)) {}
  void set_current_seed(uint64_t seed) override { inner.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { inner.set_offset(offset); }
  uint64_t get_offset() const override { return inner.get_offset(); }
  uint64_t current_seed() const override { return inner.current_seed(); }
  uint64_t seed() override { return inner.seed(); }
  void set_state(const c10::TensorImpl& state) override { inner.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return inner.unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override { return new Generator(device().index(), inner.clone()); }
};

at::Generator new_generator(c10::DeviceIndex index) {
  auto inner = at::make_generator<at::CPUGeneratorImpl>();
  return at::make_generator<Generator>(index < 0 ? current : index, inner);
}

const at::Generator& default_generator(c10::DeviceIndex index) {
  static auto* all = [] {
    auto* made = new std::vector<at::Generator>();
    for (int k = 0; k < MOST_DEVICES; ++k) made->push_back(new_generator(k));
    return made;
  }();
  return (*all)[index < 0 ? current : index];
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return settings.devices > 0; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return settings.devices; }
  void setCurrentDevice(c10::DeviceIndex index) const override { Guard().setDevice({NPU, index}); }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex index) const override {
    return Guard().exchangeDevice({NPU, index}).index();
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex index) const override {
    return index < 0 ? current : exchangeDevice(index);
  }
  bool isPinnedPtr(const void* data) const override { return is_pinned_memory(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override {
    static auto* one = new PinnedAllocator();
    return one;
  }
  c10::Device getDeviceFromPtr(void*) const override { return {NPU, current}; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex index) const override { return default_generator(index); }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override { return new_generator(index); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const override {
    auto* impl = storage.unsafeGetStorageImpl();
    TORCH_CHECK(impl->resizable(), "Trying to resize storage that is not resizable");
    auto data = allocated(nbytes, impl->device().index());
    if (auto both = std::min(nbytes, impl->nbytes())) memcpy(data.get(), impl->data(), both);
    impl->set_data_ptr_noswap(std::move(data));
    impl->set_nbytes(nbytes);
  }
};

// --- Aliases ---------------------------------------------------------------------------------------

// A storage of the CPU over a storage of the device, which it keeps.
void release_alias(void* kept) {
  c10::intrusive_ptr<c10::StorageImpl>::reclaim(static_cast<c10::StorageImpl*>(kept));
}

c10::Storage storage_alias(const c10::Storage& storage) {
  auto* kept = storage.getWeakStorageImpl().lock().release();
  c10::DataPtr data(kept->mutable_data(), kept, &release_alias, c10::Device(c10::DeviceType::CPU));
  return c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), storage.nbytes(), std::move(data), c10::GetCPUAllocator(), true));
}

at::Tensor with_storage(const at::Tensor& like, c10::Storage storage, c10::DispatchKey key) {
  auto made = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), c10::DispatchKeySet(key), like.dtype());
  auto* impl = made.unsafeGetTensorImpl();
  impl->set_storage_offset(like.storage_offset());
  impl->set_sizes_and_strides(like.sizes(), like.strides());
  if (like.is_conj()) impl->_set_conj(true);
  if (like.is_neg()) impl->_set_neg(true);
  if (like.unsafeGetTensorImpl()->is_wrapped_number()) impl->set_wrapped_number(true);
  return made;
}

void check_strided(const at::Tensor& one) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      one.layout() == c10::kStrided && one.has_storage() && !one.is_quantized(),
      "NOT_SUPPORT: tensors of layout ", one.layout(), one.is_quantized() ? ", quantized," : "",
      " have no kernels on the emulated npu device");
}

at::Tensor cpu_alias(const at::Tensor& one) {
  check_strided(one);
  return with_storage(one, storage_alias(one.storage()), c10::DispatchKey::CPU);
}

// A tensor of the CPU as one of the device: over the same bytes, or over those that it is an alias of.
at::Tensor npu_of(const at::Tensor& one, c10::DeviceIndex index) {
  if (!one.defined() || one.device().type() == NPU) return one;
  check_strided(one);
  auto& data = one.storage().unsafeGetStorageImpl()->mutable_data_ptr();
  if (data.get_deleter() == &release_alias) {
    auto* kept = static_cast<c10::StorageImpl*>(data.get_context());
    c10::Storage storage(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(kept));
    return with_storage(one, storage, c10::DispatchKey::PrivateUse1);
  }
  auto* owner = one.storage().getWeakStorageImpl().lock().release();
  c10::DataPtr held(owner->mutable_data(), owner, &release_alias, c10::Device(c10::DeviceType::CPU));
  c10::Storage storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), owner->nbytes(), adopted(std::move(held), owner->nbytes(), index),
      &allocator(), true));
  return with_storage(one, storage, c10::DispatchKey::PrivateUse1);
}

// --- Fallback --------------------------------------------------------------------------------------

std::mutex fallback_mutex;
std::unordered_map<std::string, int64_t>& fallbacks() {
  static auto* known = new std::unordered_map<std::string, int64_t>();
  return *known;
}
// What fills memory or moves it computes nothing.
const std::unordered_set<std::string> uncounted = {
    "aten::arange", "aten::fill_", "aten::zero_", "aten::eye", "aten::linspace", "aten::range",
    "aten::copy_", "aten::set_", "aten::_local_scalar_dense", "aten::record_stream", "aten::lift_fresh",
};

std::string name_of(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void count_fallback(const std::string& base, const std::string& name) {
  if (uncounted.count(base)) return;
  int64_t before;
  {
    std::lock_guard<std::mutex> lock(fallback_mutex);
    before = fallbacks()[name]++;
  }
  if (settings.fallback == 2) {
    char now[32];
    time_t seconds = time(nullptr);
    strftime(now, sizeof now, "%Y-%m-%d-%H:%M:%S", localtime(&seconds));
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, "The operator '", name, "' is not currently supported on the NPU backend, and falling back to the CPU "
        "is forbidden\n[ERROR] ", now, " (PID:", getpid(), ", Device:", int(current),
        ", RankID:-1) ERR01007 OPS feature not supported");
  }
  if (settings.fallback == 1 && !before)
    TORCH_WARN(
        "CAUTION: The operator '", name, "' is not currently supported on the NPU backend and will fall back to run "
        "on the CPU. This may have performance implications.");
}

struct Pair {
  at::Tensor npu, cpu;
};

struct Call {
  std::vector<Pair> pairs;
  std::vector<std::pair<c10::StorageImpl*, c10::Storage>> storages;
  c10::DeviceIndex index = -1;
  bool has_cpu = false;

  at::Tensor to_cpu(const at::Tensor& one, bool may_be_cpu) {
    if (!one.defined() || one.is_meta()) return one;
    if (one.device().type() != NPU) {
      if (one.dim() > 0 && !may_be_cpu) has_cpu = true;
      return one;
    }
    TORCH_CHECK(
        index < 0 || index == one.device().index(),
        "Expected all tensors to be on the same device, but found at least two devices, npu:", int(index), " and npu:",
        int(one.device().index()), "!");
    index = one.device().index();
    for (auto& pair : pairs)
      if (pair.npu.is_same(one)) return pair.cpu;
    check_strided(one);
    auto* mine = one.storage().unsafeGetStorageImpl();
    c10::Storage alias;
    for (auto& known : storages)
      if (known.first == mine) alias = known.second;
    if (!alias) storages.emplace_back(mine, alias = storage_alias(one.storage()));
    pairs.push_back({one, with_storage(one, alias, c10::DispatchKey::CPU)});
    return pairs.back().cpu;
  }

  // Memory and shape that the CPU's kernel gave an argument.
  void write_back(Pair& pair) {
    auto* mine = pair.npu.storage().unsafeGetStorageImpl();
    auto* theirs = pair.cpu.storage().unsafeGetStorageImpl();
    if (theirs->data() != mine->data() || theirs->nbytes() != mine->nbytes()) {
      auto nbytes = theirs->nbytes();
      auto data = std::move(theirs->mutable_data_ptr());
      int on = pair.npu.device().index();
      if (data.get_deleter() != &release_alias) mine->set_data_ptr_noswap(adopted(std::move(data), nbytes, on));
      mine->set_nbytes(nbytes);
      c10::Storage again = storage_alias(pair.npu.storage());
      theirs->set_data_ptr_noswap(std::move(again.unsafeGetStorageImpl()->mutable_data_ptr()));
    }
    if (pair.cpu.sizes() != pair.npu.sizes() || pair.cpu.strides() != pair.npu.strides() ||
        pair.cpu.storage_offset() != pair.npu.storage_offset()) {
      auto* impl = pair.npu.unsafeGetTensorImpl();
      impl->set_storage_offset(pair.cpu.storage_offset());
      impl->set_sizes_and_strides(pair.cpu.sizes(), pair.cpu.strides());
    }
  }

  at::Tensor to_npu(const at::Tensor& one) {
    for (auto& pair : pairs)
      if (pair.cpu.is_same(one)) return pair.npu;
    return npu_of(one, index < 0 ? current : index);
  }
};

const auto cpu_keys = c10::DispatchKeySet(c10::DispatchKey::CPU);

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto& name = op.operator_name();
  const size_t count = schema.arguments().size(), begin = stack->size() - count;
  Call call;
  bool names_npu = false;
  for (size_t k = 0; k < count; ++k) {
    auto& value = (*stack)[begin + k];
    if (value.isTensor()) {
      value = call.to_cpu(value.toTensor(), false);
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> made;
      for (const at::Tensor& one : value.toTensorVector()) made.push_back(call.to_cpu(one, false));
      value = c10::List<at::Tensor>(made);
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> made;
      for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector())
        made.push_back(one ? std::optional<at::Tensor>(call.to_cpu(*one, true)) : std::nullopt);
      value = made;
    } else if (value.isDevice() && value.toDevice().type() == NPU) {
      names_npu = true;
      if (call.index < 0 && value.toDevice().index() >= 0) call.index = value.toDevice().index();
      value = c10::Device(c10::DeviceType::CPU);
    } else if (value.isGenerator()) {
      auto given = value.toGenerator();
      TORCH_CHECK(
          given.device().type() == NPU, "Expected a 'npu' device type for generator but found '",
          c10::DeviceTypeName(given.device().type(), true), "'");
      value = static_cast<Generator*>(given.unsafeGetGeneratorImpl())->inner;
    }
  }
  TORCH_CHECK(
      !call.has_cpu || call.index < 0,
      "Expected all tensors to be on the same device, but found at least two devices, npu:", int(call.index),
      " and cpu!");
  for (size_t k = 0; k < count; ++k)  // random numbers without a generator are the device's
    if ((*stack)[begin + k].isNone() && schema.arguments()[k].type()->str() == "Generator?")
      (*stack)[begin + k] = static_cast<Generator*>(default_generator(call.index).unsafeGetGeneratorImpl())->inner;
  count_fallback(name.name, name_of(name));
  op.redispatchBoxed(cpu_keys, stack);
  for (auto& pair : call.pairs) call.write_back(pair);
  const size_t results = schema.returns().size(), first = stack->size() - results;
  for (size_t k = 0; k < results; ++k) {
    auto& value = (*stack)[first + k];
    if (value.isTensor()) {
      if (call.index >= 0 || names_npu) value = call.to_npu(value.toTensor());
    } else if (value.isTensorList()) {
      std::vector<at::Tensor> made;
      for (const at::Tensor& one : value.toTensorVector()) made.push_back(call.to_npu(one));
      value = c10::List<at::Tensor>(made);
    }
  }
}

// --- Kernels that rearrange ------------------------------------------------------------------------

c10::Device device_or_current(std::optional<c10::Device> device) {
  auto index = device && device->index() >= 0 ? device->index() : current;
  check_index(index);
  return {NPU, index};
}

constexpr c10::DispatchKeySet npu_keys(c10::DispatchKey::PrivateUse1);

void check_factory(std::optional<at::Layout> layout, std::optional<bool> pin) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      !layout || *layout == c10::kStrided, "NOT_SUPPORT: the emulated npu device has strided tensors only");
  TORCH_CHECK(!pin || !*pin, "Only dense CPU tensors can be pinned");
}

at::Tensor empty(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin, std::optional<at::MemoryFormat> format) {
  check_factory(layout, pin);
  c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &allocator(), npu_keys, c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pin) {
  check_factory(layout, pin);
  c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator(), npu_keys,
      c10::dtype_or_default(dtype));
}

at::Tensor zero_tensor(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin) {
  auto made = empty(size, dtype, layout, device, pin, std::nullopt);
  if (made.nbytes()) memset(made.mutable_data_ptr(), 0, made.nbytes());
  return made;
}

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef size, std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard guard(self.device());
  auto* impl = self.unsafeGetTensorImpl();
  at::native::resize_impl_cpu_(impl, size, std::nullopt);
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

at::Tensor& set_storage(
    at::Tensor& self, at::Storage source, int64_t offset, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::set_storage_cpu_(self, std::move(source), offset, size, stride);
}

at::Tensor copy_from(const at::Tensor& self, const at::Tensor& dst, bool) {
  auto to = dst.device().type() == NPU ? cpu_alias(dst) : dst;
  auto from = self.device().type() == NPU ? cpu_alias(self) : self;
  at::AutoDispatchBelowADInplaceOrView below;
  to.copy_(from);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& dst) {
  if (dst.sizes() != self.sizes()) dst.resize_(self.sizes());
  return copy_from(self, dst, false);
}

at::Scalar local_scalar(const at::Tensor& self) {
  auto one = cpu_alias(self);
  at::AutoDispatchBelowADInplaceOrView below;
  return one.item();
}

// The NPU has no conversion to double: what is there becomes float, with one warning.
at::Tensor to_copy(
    const at::Tensor& self, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> pin, bool non_blocking,
    std::optional<at::MemoryFormat> format) {
  if (dtype == at::kDouble && self.scalar_type() != at::kDouble && (!device || device->type() == NPU)) {
    TORCH_WARN_ONCE("Device do not support double dtype now, dtype cast replace with float.");
    dtype = at::kFloat;
    if (self.scalar_type() == at::kFloat && !device) return self.clone(format);
  }
  return at::native::_to_copy(self, dtype, layout, device, pin, non_blocking, format);
}

void record_stream(at::Tensor&, at::Stream) {}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_efficientzerotensor", TORCH_FN(zero_tensor));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("view.dtype", TORCH_FN(at::native::view_dtype));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage", TORCH_FN(static_cast<at::Tensor& (*)(at::Tensor&, at::Storage)>(at::native::set_)));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
  m.impl("_to_copy", TORCH_FN(to_copy));
  m.impl("record_stream", TORCH_FN(record_stream));
  // Kernels of all devices, of which PyTorch has parts for some only.
  for (auto name : {"mode", "mode.values", "conj_physical_", "kaiser_window.out", "kaiser_window.periodic_out",
                    "kaiser_window.beta_out"})
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

// --- Functional forms -------------------------------------------------------------------------------

// The short way to a functional form, for calls of one dtype on one device: operands become aliases without a round
// trip through Python's argument parsing. All others, and what a form refuses, take the long way in Python.
enum Passed { OPERAND = 0, VALUE = 1, DEFAULT = 2 };

struct Argument {
  Passed passed;
  c10::IValue expected;  // of DEFAULT
};

struct Form {
  PyObject* call = nullptr;
  PyObject* names = nullptr;  // keywords of the last values
  std::vector<Argument> arguments;
  bool one_dtype = false, in_place = false, real = false;  // of real numbers only
  std::string name;
  std::atomic<int64_t> calls{0};
};

std::vector<Form*>& forms() {
  static auto* all = new std::vector<Form*>();
  return *all;
}

bool same_value(const c10::IValue& a, const c10::IValue& b) {
  if (a.isNone() || b.isNone()) return a.isNone() && b.isNone();
  if (a.isBool() && b.isBool()) return a.toBool() == b.toBool();
  if (a.isInt() && b.isInt()) return a.toInt() == b.toInt();
  if (a.isString() && b.isString()) return a.toStringRef() == b.toStringRef();
  if ((a.isInt() || a.isDouble()) && (b.isInt() || b.isDouble())) return a.toScalar().toDouble() == b.toScalar().toDouble();
  return a.isIntList() && b.isIntList() && a.toIntVector() == b.toIntVector();
}

bool is_number(const c10::IValue& value) { return value.isInt() || value.isDouble() || value.isBool(); }

PyObject* python_of(const c10::IValue& value) {
  if (value.isNone()) Py_RETURN_NONE;
  if (value.isBool()) return PyBool_FromLong(value.toBool());
  if (value.isInt()) return PyLong_FromLongLong(value.toInt());
  if (value.isDouble()) return PyFloat_FromDouble(value.toDouble());
  if (value.isString()) return PyUnicode_FromString(value.toStringRef().c_str());
  auto all = value.toIntVector();
  PyObject* made = PyList_New(all.size());
  for (size_t k = 0; k < all.size(); ++k) PyList_SET_ITEM(made, k, PyLong_FromLongLong(all[k]));
  return made;
}

struct Gil {
  PyGILState_STATE state = PyGILState_Ensure();
  ~Gil() { PyGILState_Release(state); }
};

// What operands of a call share, and whether it may take the short way.
struct Shared {
  int index = -1;
  at::ScalarType dtype = at::kFloat;
  bool takes(const at::Tensor& one, bool one_dtype) {
    if (!one.defined() || one.device().type() != NPU || one.layout() != c10::kStrided || one.is_conj() || one.is_neg() ||
        one.unsafeGetTensorImpl()->is_python_dispatch() || !one.has_storage())
      return false;
    if (index < 0) {
      index = one.device().index(), dtype = one.scalar_type();
      return true;
    }
    return index == one.device().index() && (!one_dtype || dtype == one.scalar_type());
  }
};

bool is_plain_number(const at::Tensor& one) {
  return one.defined() && one.device().is_cpu() && one.dim() == 0 && one.unsafeGetTensorImpl()->is_wrapped_number() &&
      !one.is_complex();
}

bool takes_short_way(const Form& form, const c10::IValue* given, Shared& shared) {
  if (at::functorch::functorchTLSAccessor() || torch::autograd::ForwardADLevel::try_get_by_idx(0)) return false;
  for (size_t k = 0; k < form.arguments.size(); ++k) {
    const auto& value = given[k];
    switch (form.arguments[k].passed) {
      case DEFAULT:
        if (!same_value(value, form.arguments[k].expected)) return false;
        break;
      case VALUE:
        if (!value.isNone() && !is_number(value) && !value.isString() && !value.isIntList()) return false;
        break;
      case OPERAND:
        if (value.isTensor()) {
          const auto& one = value.toTensor();
          if (!one.defined() || one.device().type() != NPU) {
            if (!k || !is_plain_number(one)) return false;
          } else if (!shared.takes(one, form.one_dtype)) {
            return false;
          }
        } else if (value.isTensorList()) {
          for (const at::Tensor& one : value.toTensorVector())
            if (!shared.takes(one, form.one_dtype)) return false;
        } else if (!value.isNone() && !is_number(value)) {
          return false;
        }
    }
  }
  if (shared.index < 0 || (form.real && !at::isFloatingType(shared.dtype))) return false;
  if (!form.in_place) return true;
  for (size_t k = 1; k < form.arguments.size(); ++k) {  // a number's kind must not exceed that of what is written
    const auto& value = given[k];
    if (form.arguments[k].passed != OPERAND || !(value.isTensor() ? is_plain_number(value.toTensor()) : is_number(value)))
      continue;
    bool real = value.isTensor() ? value.toTensor().is_floating_point() : value.isDouble();
    if (shared.dtype == at::kBool || (real && !at::isFloatingType(shared.dtype))) return false;
  }
  return true;
}

// An operand as Python's: an alias on the CPU, a number, or a list of aliases.
PyObject* operand_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const auto& one = value.toTensor();
    if (one.device().type() == NPU) return THPVariable_Wrap(cpu_alias(one));
    auto number = one.item();
    if (number.isBoolean()) return PyBool_FromLong(number.toBool());
    return number.isIntegral(false) ? PyLong_FromLongLong(number.toLong()) : PyFloat_FromDouble(number.toDouble());
  }
  if (value.isTensorList()) {
    auto all = value.toTensorVector();
    PyObject* made = PyList_New(all.size());
    for (size_t k = 0; k < all.size(); ++k) PyList_SET_ITEM(made, k, THPVariable_Wrap(cpu_alias(all[k])));
    return made;
  }
  return python_of(value);
}

// Results of a form; false where they are no tensors.
bool take_results(PyObject* made, int index, std::vector<at::Tensor>& results) {
  if (THPVariable_Check(made)) {
    results.push_back(npu_of(THPVariable_Unpack(made), index));
    return true;
  }
  if (!PyTuple_Check(made)) return false;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(made); ++k) {
    PyObject* one = PyTuple_GET_ITEM(made, k);
    if (!THPVariable_Check(one)) return false;
    results.push_back(npu_of(THPVariable_Unpack(one), index));
  }
  return true;
}

bool computed_by(Form& form, const c10::IValue* given, int index, std::vector<at::Tensor>& results) {
  constexpr int MOST = 12;
  PyObject* values[MOST + 1];
  int count = 0;
  Gil gil;
  at::AutoDispatchBelowADInplaceOrView below;
  for (size_t k = 0; k < form.arguments.size(); ++k) {
    if (form.arguments[k].passed == DEFAULT) continue;
    values[++count] = form.arguments[k].passed == OPERAND ? operand_of(given[k]) : python_of(given[k]);
  }
  const size_t named = form.names ? PyTuple_GET_SIZE(form.names) : 0;
  PyObject* made =
      PyObject_Vectorcall(form.call, values + 1, (count - named) | PY_VECTORCALL_ARGUMENTS_OFFSET, form.names);
  for (int k = 1; k <= count; ++k) Py_DECREF(values[k]);
  if (!made) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {  // an interrupt
      python_error error;
      error.persist();
      throw error;
    }
    PyErr_Clear();  // the long way gives the reason, or falls back
    return false;
  }
  bool taken = form.in_place || take_results(made, index, results);
  Py_DECREF(made);
  return taken;
}

struct ShortWay final : c10::OperatorKernel {
  Form* form;
  c10::OperatorHandle longer;
  ShortWay(Form* form_, c10::OperatorHandle longer_) : form(form_), longer(longer_) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const size_t count = form->arguments.size();
    const c10::IValue* given = stack->data() + (stack->size() - count);
    Shared shared;
    std::vector<at::Tensor> results;
    if (!takes_short_way(*form, given, shared) || !computed_by(*form, given, shared.index, results)) {
      longer.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), stack);
      return;
    }
    form->calls.fetch_add(1, std::memory_order_relaxed);
    if (form->in_place) results.push_back(given->toTensor());
    stack->erase(stack->end() - count, stack->end());
    for (auto& one : results) stack->emplace_back(std::move(one));
  }
};

torch::Library& library_of_forms() {
  static auto* library = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  return *library;
}

// --- For Python ------------------------------------------------------------------------------------

PyObject* py_register(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  int devices, mode;
  unsigned long long memory;
  if (!PyArg_ParseTuple(args, "iKi", &devices, &memory, &mode)) return nullptr;
  settings.devices = devices, settings.memory = memory, settings.fallback = mode;
  TORCH_CHECK(!at::isPrivateUse1HooksRegistered(), "another backend has registered hooks for PrivateUse1");
  c10::SetAllocator(NPU, &allocator());
  static c10::impl::DeviceGuardImplRegistrar guard(NPU, new Guard());
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  torch::utils::register_fork_handler_for_device_init(NPU);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* py_alias(PyObject*, PyObject* one) {
  HANDLE_TH_ERRORS
  return THPVariable_Wrap(cpu_alias(THPVariable_Unpack(one)));
  END_HANDLE_TH_ERRORS
}

PyObject* py_adopt(PyObject*, PyObject* const* args, Py_ssize_t) {
  HANDLE_TH_ERRORS
  return THPVariable_Wrap(npu_of(THPVariable_Unpack(args[0]), PyLong_AsLong(args[1])));
  END_HANDLE_TH_ERRORS
}

// Memory and shape of a tensor of the CPU, which is an alias or was made anew, for a tensor of the device.
PyObject* py_give(PyObject*, PyObject* const* args, Py_ssize_t) {
  HANDLE_TH_ERRORS
  Pair pair{THPVariable_Unpack(args[0]), THPVariable_Unpack(args[1])};
  Call().write_back(pair);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* py_fallbacks(PyObject*, PyObject*) {
  std::lock_guard<std::mutex> lock(fallback_mutex);
  PyObject* found = PyDict_New();
  for (auto& one : fallbacks()) {
    PyObject* count = PyLong_FromLongLong(one.second);
    PyDict_SetItemString(found, one.first.c_str(), count);
    Py_DECREF(count);
  }
  return found;
}

PyObject* py_reset(PyObject*, PyObject*) {
  std::lock_guard<std::mutex> lock(fallback_mutex);
  fallbacks().clear();
  Py_RETURN_NONE;
}

PyObject* py_count(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  const char *base, *name;
  if (!PyArg_ParseTuple(args, "ss", &base, &name)) return nullptr;
  count_fallback(base, name);
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* py_stats(PyObject*, PyObject* given) {
  Counts& of = counts[PyLong_AsLong(given)];
  std::lock_guard<std::mutex> lock(of.mutex);
  return Py_BuildValue(
      "(LLLLLLLLL)", (long long)of.bytes, (long long)of.most_bytes, (long long)of.bytes_made,
      (long long)of.bytes_freed, (long long)of.blocks, (long long)of.most_blocks, (long long)of.blocks_made,
      (long long)of.blocks_freed, (long long)of.ooms);
}

PyObject* py_reset_stats(PyObject*, PyObject* args) {
  int index, peak;
  if (!PyArg_ParseTuple(args, "ip", &index, &peak)) return nullptr;
  if (peak) allocator().resetPeakStats(index);
  else allocator().resetAccumulatedStats(index);
  Py_RETURN_NONE;
}

PyObject* py_set_limit(PyObject*, PyObject* given) {
  settings.memory = PyLong_AsUnsignedLongLong(given);
  Py_RETURN_NONE;
}

PyObject* py_default_generator(PyObject*, PyObject* given) {
  HANDLE_TH_ERRORS
  return THPGenerator_Wrap(default_generator(c10::DeviceIndex(PyLong_AsLong(given))));
  END_HANDLE_TH_ERRORS
}

// Whether a tensor stands for a number of Python's, which has less say in dtypes.
PyObject* py_is_number(PyObject*, PyObject* one) {
  HANDLE_TH_ERRORS
  return PyBool_FromLong(THPVariable_Unpack(one).unsafeGetTensorImpl()->is_wrapped_number());
  END_HANDLE_TH_ERRORS
}

// (operator, overload, longer, call, passed, names, one_dtype, in_place, real): the kernel of an operator of ATen.
PyObject* py_implement(PyObject*, PyObject* args) {
  HANDLE_TH_ERRORS
  const char *name, *overload, *longer;
  PyObject *call, *passed, *names;
  int one_dtype, in_place, real;
  if (!PyArg_ParseTuple(
          args, "sssOO!Oppp", &name, &overload, &longer, &call, &PyTuple_Type, &passed, &names, &one_dtype, &in_place,
          &real))
    return nullptr;
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto op = dispatcher.findSchemaOrThrow(name, overload);
  auto* form = new Form();
  form->name = name_of(op.operator_name());
  const auto& schema = op.schema().arguments();
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(passed); ++k) {
    auto kind = Passed(PyLong_AsLong(PyTuple_GET_ITEM(passed, k)));
    auto expected = schema[k].default_value();
    form->arguments.push_back({kind, expected ? *expected : c10::IValue()});
  }
  form->call = Py_NewRef(call), form->names = names == Py_None ? nullptr : Py_NewRef(names);
  form->one_dtype = one_dtype, form->in_place = in_place, form->real = real;
  forms().push_back(form);
  auto kernel = std::make_unique<ShortWay>(form, dispatcher.findSchemaOrThrow(longer, ""));
  std::string whole = std::string(name).substr(6) + (*overload ? "." : "") + overload;
  library_of_forms().impl(whole.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::move(kernel)));
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyObject* py_computed(PyObject*, PyObject*) {
  PyObject* found = PyDict_New();
  for (auto* one : forms()) {
    if (!one->calls) continue;
    PyObject* count = PyLong_FromLongLong(one->calls);
    PyDict_SetItemString(found, one->name.c_str(), count);
    Py_DECREF(count);
  }
  return found;
}

PyObject* py_reset_computed(PyObject*, PyObject*) {
  for (auto* one : forms()) one->calls = 0;
  Py_RETURN_NONE;
}

PyObject* py_current(PyObject*, PyObject*) { return PyLong_FromLong(current); }

PyObject* py_set_current(PyObject*, PyObject* given) {
  HANDLE_TH_ERRORS
  Guard().setDevice({NPU, c10::DeviceIndex(PyLong_AsLong(given))});
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyMethodDef methods[] = {
    {"register", py_register, METH_VARARGS, "Register memory, devices and hooks; once."},
    {"alias", py_alias, METH_O, "A CPU tensor over the memory of one of the device."},
    {"adopt", reinterpret_cast<PyCFunction>(py_adopt), METH_FASTCALL, "A CPU tensor as one of the device."},
    {"give", reinterpret_cast<PyCFunction>(py_give), METH_FASTCALL, "Give a device tensor a CPU tensor's memory."},
    {"fallbacks", py_fallbacks, METH_NOARGS, "Calls of CPU kernels by operator."},
    {"reset_fallbacks", py_reset, METH_NOARGS, "Count anew."},
    {"count_fallback", py_count, METH_VARARGS, "Count one more, by the operator's name and overload."},
    {"implement", py_implement, METH_VARARGS, "Give an operator a functional form as its kernel."},
    {"computed", py_computed, METH_NOARGS, "Calls that took the short way to a form, by operator."},
    {"reset_computed", py_reset_computed, METH_NOARGS, "Count them anew."},
    {"stats", py_stats, METH_O, "Counts of a device's memory."},
    {"reset_stats", py_reset_stats, METH_VARARGS, "Reset peaks, or sums."},
    {"set_limit", py_set_limit, METH_O, "Set the device's memory in bytes."},
    {"default_generator", py_default_generator, METH_O, "The generator of a device."},
    {"is_number", py_is_number, METH_O, "Whether a tensor stands for a number of Python's."},
    {"current_device", py_current, METH_NOARGS, "Index of this thread's device."},
    {"set_device", py_set_current, METH_O, "Choose this thread's device."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "aclnn_npu_device", nullptr, -1, methods};

}  // namespace

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_aclnn_npu_device() {
  return PyModule_Create(&module);
}
