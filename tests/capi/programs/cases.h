/* Arguments of operators, read from a file, and what calls with them give: for the generated program. */
#ifndef CASES_H
#define CASES_H

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

inline std::vector<unsigned char> from_hex(const std::string &text) {
  std::vector<unsigned char> bytes;
  for (size_t k = 0; k + 1 < text.size(); k += 2) bytes.push_back((unsigned char)std::stoi(text.substr(k, 2), nullptr, 16));
  return bytes;
}

/* One case: its arguments, what they are made of, and what is to be destroyed. */
struct Case {
  std::ifstream &file;
  struct Memory { void *address; size_t bytes; };
  std::vector<Memory> memory;
  std::vector<const aclTensor *> tensors;
  std::vector<const aclScalar *> scalars;
  std::vector<const aclIntArray *> ints;
  std::vector<const aclBoolArray *> bools;
  std::vector<const aclTensorList *> lists;
  std::vector<std::string *> texts;

  explicit Case(std::ifstream &given) : file(given) {}
  template <typename T> T read() { T value; file >> value; return value; }

  aclTensor *tensor() {
    auto kind = read<std::string>();
    if (kind == "null") return nullptr;
    int dtype = read<int>(), ndim = read<int>();
    std::vector<int64_t> shape, strides;
    for (int k = 0; k < ndim; k++) shape.push_back(read<int64_t>());
    for (int k = 0; k < ndim; k++) strides.push_back(read<int64_t>());
    int64_t elements = read<int64_t>();
    auto text = read<std::string>();
    auto bytes = from_hex(text == "-" ? "" : text);
    void *address = nullptr;
    size_t size = bytes.size() ? bytes.size() : 1;
    if (aclrtMalloc(&address, size, ACL_MEM_MALLOC_HUGE_FIRST)) return nullptr;
    if (bytes.size() && aclrtMemcpy(address, size, bytes.data(), bytes.size(), ACL_MEMCPY_HOST_TO_DEVICE)) return nullptr;
    memory.push_back({address, bytes.size()});
    return aclCreateTensor(shape.data(), shape.size(), (aclDataType)dtype, strides.data(), 0, ACL_FORMAT_ND,
                           &elements, 1, address);
  }
};

template <typename T, typename = void> struct Argument;
template <> struct Argument<const aclTensor *> {
  static const aclTensor *get(Case &c) { auto t = c.tensor(); c.tensors.push_back(t); return t; }
};
template <> struct Argument<aclTensor *> {
  static aclTensor *get(Case &c) { auto t = c.tensor(); c.tensors.push_back(t); return t; }
};
template <> struct Argument<aclScalar *> {
  static aclScalar *get(Case &c) {
    auto kind = c.read<std::string>();
    if (kind == "null") return nullptr;
    int dtype = c.read<int>();
    auto bytes = from_hex(c.read<std::string>());
    auto made = aclCreateScalar(bytes.data(), (aclDataType)dtype);
    c.scalars.push_back(made);
    return made;
  }
};
template <> struct Argument<const aclScalar *> {
  static const aclScalar *get(Case &c) { return Argument<aclScalar *>::get(c); }
};
template <> struct Argument<aclIntArray *> {
  static aclIntArray *get(Case &c) {
    auto kind = c.read<std::string>();
    if (kind == "null") return nullptr;
    std::vector<int64_t> values(c.read<size_t>());
    for (auto &one : values) one = c.read<int64_t>();
    auto made = aclCreateIntArray(values.data(), values.size());
    c.ints.push_back(made);
    return made;
  }
};
template <> struct Argument<const aclIntArray *> {
  static const aclIntArray *get(Case &c) { return Argument<aclIntArray *>::get(c); }
};
template <> struct Argument<const aclBoolArray *> {
  static const aclBoolArray *get(Case &c) {
    auto kind = c.read<std::string>();
    if (kind == "null") return nullptr;
    size_t count = c.read<size_t>();
    bool values[64];
    for (size_t k = 0; k < count; k++) values[k] = c.read<int>() != 0;
    auto made = aclCreateBoolArray(values, count);
    c.bools.push_back(made);
    return made;
  }
};
template <> struct Argument<aclTensorList *> {
  static aclTensorList *get(Case &c) {
    auto kind = c.read<std::string>();
    if (kind == "null") return nullptr;
    std::vector<aclTensor *> items(c.read<size_t>());
    for (auto &one : items) one = c.tensor();
    auto made = aclCreateTensorList(items.data(), items.size());
    c.lists.push_back(made);
    return made;
  }
};
template <> struct Argument<const aclTensorList *> {
  static const aclTensorList *get(Case &c) { return Argument<aclTensorList *>::get(c); }
};
template <> struct Argument<char *> {
  static char *get(Case &c) {
    auto kind = c.read<std::string>();
    if (kind == "null") return nullptr;
    auto text = new std::string(c.read<std::string>());
    c.texts.push_back(text);
    return &(*text)[0];
  }
};
template <> struct Argument<const char *> {
  static const char *get(Case &c) { return Argument<char *>::get(c); }
};
template <> struct Argument<bool> { static bool get(Case &c) { return c.read<int>() != 0; } };
template <> struct Argument<double> { static double get(Case &c) { return c.read<double>(); } };
template <> struct Argument<float> { static float get(Case &c) { return (float)c.read<double>(); } };
template <> struct Argument<aclDataType> { static aclDataType get(Case &c) { return (aclDataType)c.read<int>(); } };
template <> struct Argument<int8_t> { static int8_t get(Case &c) { return (int8_t)c.read<int>(); } };
template <> struct Argument<int> { static int get(Case &c) { return c.read<int>(); } };
template <> struct Argument<int64_t> { static int64_t get(Case &c) { return c.read<int64_t>(); } };
template <> struct Argument<uint64_t> { static uint64_t get(Case &c) { return c.read<uint64_t>(); } };

template <> struct Argument<uint64_t *> { static uint64_t *get(Case &) { return nullptr; } };
template <> struct Argument<aclOpExecutor **> { static aclOpExecutor **get(Case &) { return nullptr; } };

/* An argument of any type, and whether it is a pointer. */
struct Any {
  unsigned char bytes[8];
  bool is_pointer;
  template <typename T> T as() const { T value; std::memcpy(&value, bytes, sizeof value); return value; }
  template <typename T> void set(T value) { std::memcpy(bytes, &value, sizeof value); }
};
template <typename T> Any any_of(T value) {
  static_assert(sizeof value <= 8, "arguments fit into eight bytes");
  Any made = {{0}, std::is_pointer<T>::value};
  made.set(value);
  return made;
}

/* Phase one of any signature: what depends on the signature is only this. */
typedef void (*Function)();
typedef aclnnStatus (*Phase)(Function, const Any *);
template <typename... All, size_t... K> aclnnStatus call(Function plan, const Any *given, std::index_sequence<K...>) {
  return ((aclnnStatus (*)(All...))plan)(given[K].as<All>()...);
}
template <typename... All> aclnnStatus phase(Function plan, const Any *given) {
  return call<All...>(plan, given, std::index_sequence_for<All...>());
}

struct Call {
  Phase phase;
  Function plan;
  std::vector<Any> given;

  int with(uint64_t *size, aclOpExecutor **executor) {
    given[given.size() - 2].set(size);
    given[given.size() - 1].set(executor);
    return phase(plan, given.data());
  }
  /* The status with each argument null in turn that is a pointer. */
  void without_each() {
    for (size_t at = 0; at + 2 < given.size(); at++) {
      Any before = given[at];
      if (!before.is_pointer || before.as<void *>() == nullptr) continue;
      given[at].set((void *)nullptr);
      uint64_t size = 1;
      aclOpExecutor *executor = (aclOpExecutor *)&size;
      int status = with(&size, &executor);
      std::printf(" %zu:%d", at, status);
      if (status != 0 && executor != nullptr) std::printf("!");
      if (status == 0) aclDestroyAclOpExecutor(executor);
      given[at] = before;
    }
  }
};

/* Both phases twice, and phase one with nulls; prints statuses, and the bytes of all memory. */
inline int drive_any(const char *name, Call call, aclnnStatus (*run)(void *, uint64_t, aclOpExecutor *, aclrtStream), Case &c) {
  std::printf("%s", name);
  call.without_each();
  uint64_t size = 1;
  aclOpExecutor *executor = nullptr;
  std::printf(" size:%d", call.with(nullptr, &executor));
  std::printf(" executor:%d", call.with(&size, nullptr));
  int planned = call.with(&size, &executor);
  std::printf(" plan:%d", planned);
  if (planned) {
    std::printf(" message:%s\n", aclGetRecentErrMsg() ? "there" : "none");
  } else {
    void *workspace = nullptr;
    if (size) aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST);
    std::printf(" run:%d\n", run(workspace, size, executor, nullptr));
    if (workspace) aclrtFree(workspace);
  }
  for (auto &one : c.memory) {
    std::vector<unsigned char> bytes(one.bytes + 1);
    if (one.bytes) aclrtMemcpy(bytes.data(), one.bytes, one.address, one.bytes, ACL_MEMCPY_DEVICE_TO_HOST);
    for (size_t k = 0; k < one.bytes; k++) std::printf("%02x", bytes[k]);
    std::printf("-\n");
  }
  int failures = 0;
  for (auto one : c.tensors) failures += aclDestroyTensor(one) != 0;
  for (auto one : c.scalars) failures += aclDestroyScalar(one) != 0;
  for (auto one : c.ints) failures += aclDestroyIntArray(one) != 0;
  for (auto one : c.bools) failures += aclDestroyBoolArray(one) != 0;
  for (auto one : c.lists) failures += aclDestroyTensorList(one) != 0;
  for (auto one : c.texts) delete one;
  for (auto &one : c.memory) failures += aclrtFree(one.address) != 0;
  return failures;
}

template <typename... All>
int drive(const char *name, aclnnStatus (*plan)(All...), aclnnStatus (*run)(void *, uint64_t, aclOpExecutor *, aclrtStream), Case &c) {
  return drive_any(name, Call{phase<All...>, (Function)plan, {any_of(Argument<All>::get(c))...}}, run, c);
}

#endif
