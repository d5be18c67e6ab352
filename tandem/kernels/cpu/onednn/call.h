#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "tandem/kernels/cpu/onednn/library.h"

namespace tandem::cpu::onednn {

/// Names a primitive: the kind of work, and every number that its making depends on.
class Key {
 public:
  Key(std::initializer_list<std::int64_t> numbers);
  bool operator==(const Key& other) const {
    return hash_ == other.hash_ && count_ == other.count_ &&
           std::memcmp(numbers_, other.numbers_, count_ * sizeof(std::int64_t)) == 0;
  }
  std::uint64_t hash() const { return hash_; }

 private:
  static constexpr std::size_t kMax = 32;
  std::uint64_t hash_ = 0;
  std::size_t count_ = 0;
  std::int64_t numbers_[kMax];
};

/// A primitive and the arguments that it is run with, in the order in which `Call::run` takes them.
/// Without a primitive: the library has no implementation of the case. Immutable, shared by
/// threads.
struct Plan {
  struct Argument {
    int id;
    dnnl::memory::desc desc;
  };
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
  std::size_t scratch_bytes = 0;

  Plan() = default;
  template <class PrimitiveDesc>
  Plan(const PrimitiveDesc& desc, dnnl::primitive made, std::vector<Argument> in_order)
      : primitive(std::move(made)),
        arguments(std::move(in_order)),
        scratch_bytes(desc.scratchpad_desc().get_size()) {}
};

/// A plan with memory objects of one thread's own, whose addresses are set again for each run.
class Call {
 public:
  explicit Call(std::shared_ptr<const Plan> plan);
  bool possible() const { return static_cast<bool>(plan_->primitive); }
  const Plan& plan() const { return *plan_; }
  /// Runs on the calling thread. The data need no more alignment than their elements.
  void run(std::initializer_list<const void*> data);

 private:
  std::shared_ptr<const Plan> plan_;
  std::vector<dnnl::memory> memory_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

using MakePlan = Plan (*)(const void* what);

/// The calling thread's Call for `key`; made by `make(what)` if neither this thread nor, of late,
/// another has used it. Both the threads' caches and the shared one are bounded. Valid until the
/// thread has looked up three others.
Call& find_call(const Key& key, MakePlan make, const void* what);

/// As `call`, for work that can also be done in pieces, of which there are few kinds: null, and
/// nothing made, if `key` is not there and many others of its `family` were made, as where a batch
/// size changes from call to call. Making a primitive takes as long as running it a hundred times.
Call* find_call_of_family(const Key& key, const Key& family, MakePlan make, const void* what);

}  // namespace tandem::cpu::onednn
