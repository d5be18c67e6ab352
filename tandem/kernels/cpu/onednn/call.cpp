#include "tandem/kernels/cpu/onednn/call.h"

#include <algorithm>
#include <array>
#include <list>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "tandem/core/error.h"
#include "tandem/core/program_end.h"
#include "tandem/kernels/cpu/support/scratch.h"

namespace tandem::cpu::onednn {

Key::Key(std::initializer_list<std::int64_t> numbers) : count_(numbers.size()) {
  if (count_ > kMax) throw InternalError("A key of a oneDNN primitive has too many numbers.");
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  std::size_t i = 0;
  for (const std::int64_t number : numbers) {
    numbers_[i++] = number;
    hash = (hash ^ static_cast<std::uint64_t>(number)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  hash_ = hash;
}

Call::Call(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  for (const Plan::Argument& a : plan_->arguments) {
    memory_.emplace_back(a.desc, engine(), nullptr);
    arguments_.push_back({a.id, memory_.back().get()});
  }
  if (plan_->scratch_bytes != 0) {
    const auto bytes = static_cast<dnnl::memory::dim>(plan_->scratch_bytes);
    const dnnl::memory::desc desc({bytes}, dnnl::memory::data_type::u8,
                                  dnnl::memory::format_tag::x);
    memory_.emplace_back(desc, engine(), nullptr);
    arguments_.push_back({DNNL_ARG_SCRATCHPAD, memory_.back().get()});
  }
}

void Call::run(std::initializer_list<const void*> data) {
  std::size_t i = 0;
  for (const void* address : data) {
    const auto status = dnnl_memory_set_data_handle(memory_[i++].get(), const_cast<void*>(address));
    if (status != dnnl_success) throw_status(status, "setting an operand's address");
  }
  const Scratch scratch(plan_->scratch_bytes);
  if (plan_->scratch_bytes != 0) dnnl_memory_set_data_handle(memory_[i].get(), scratch.data());
  const OneThread one_thread;
  const auto status =
      dnnl_primitive_execute(plan_->primitive.get(), thread_stream().get(),
                             static_cast<int>(arguments_.size()), arguments_.data());
  if (status != dnnl_success) throw_status(status, "running a primitive");
}

namespace {

Plan make_plan(MakePlan make, const void* what) {
  const MakingScope making;
  if (!making.allowed()) return {};
  try {
    const OneThread one_thread;  // primitives are made for the number of threads that will run them
    return make(what);
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return {};
    throw_status(e.status, "making a primitive");
  }
}

struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.hash(); }
};

// The plans that threads share; the least recently used one makes room.
class SharedPlans {
 public:
  // `family`, if given: null once it has many members.
  std::shared_ptr<const Plan> find(const Key& key, const Key* family, MakePlan make,
                                   const void* what) {
    if (auto known = lookup(key)) return known;
    if (family && !joins(*family)) return nullptr;
    auto made = std::make_shared<const Plan>(make_plan(make, what));
    std::lock_guard lock(mutex_);
    const auto [at, added] = by_key_.try_emplace(key);
    if (!added) return at->second->plan;
    order_.push_front({key, made});
    at->second = order_.begin();
    if (order_.size() > kMax) {
      by_key_.erase(order_.back().key);
      order_.pop_back();
    }
    return made;
  }

 private:
  static constexpr std::size_t kMax = 1024;
  static constexpr int kMaxOfFamily = 16;
  struct Entry {
    Key key;
    std::shared_ptr<const Plan> plan;
  };
  bool joins(const Key& family) {
    std::lock_guard lock(mutex_);
    if (members_.size() > kMax) members_.clear();
    int& members = members_[family];
    if (members == kMaxOfFamily) return false;
    ++members;
    return true;
  }
  std::shared_ptr<const Plan> lookup(const Key& key) {
    std::lock_guard lock(mutex_);
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return nullptr;
    order_.splice(order_.begin(), order_, at->second);
    return at->second->plan;
  }
  std::mutex mutex_;
  std::list<Entry> order_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> by_key_;
  std::unordered_map<Key, int, KeyHash> members_;  // made so far, by family
};

// Never destroyed: threads may outlive static objects.
SharedPlans& shared_plans() {
  static auto* plans = new SharedPlans;
  return *plans;
}

// Sets of four, most recently used first.
class ThreadCalls {
 public:
  Call* find(const Key& key, const Key* family, MakePlan make, const void* what) {
    auto& set = sets_[key.hash() % kSets];
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set[way] && set[way]->key == key) {
        if (way != 0) std::rotate(set.begin(), set.begin() + way, set.begin() + way + 1);
        return &set[0]->call;
      }
    }
    std::shared_ptr<const Plan> plan = shared_plans().find(key, family, make, what);
    if (!plan) return nullptr;
    auto entry = std::make_unique<Entry>(Entry{key, Call(std::move(plan))});
    std::rotate(set.begin(), set.begin() + (kWays - 1), set.end());
    set[0] = std::move(entry);
    return &set[0]->call;
  }

 private:
  static constexpr std::size_t kSets = 128, kWays = 4;
  struct Entry {
    Key key;
    Call call;
  };
  std::array<std::array<std::unique_ptr<Entry>, kWays>, kSets> sets_;
};

ThreadCalls& thread_calls() {
  thread_local ThreadCalls calls;
  return calls;
}

}  // namespace

Call& find_call(const Key& key, MakePlan make, const void* what) {
  return *thread_calls().find(key, nullptr, make, what);
}

Call* find_call_of_family(const Key& key, const Key& family, MakePlan make, const void* what) {
  return thread_calls().find(key, &family, make, what);
}

}  // namespace tandem::cpu::onednn
