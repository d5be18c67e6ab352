#include "tandem/graph/op_registry.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "tandem/core/error.h"

namespace tandem {
namespace {

constexpr std::size_t kMaxOps = 8192;

}  // namespace

struct OpRegistry::State {
  mutable std::shared_mutex mutex;
  std::map<std::string, std::shared_ptr<OpDef>, std::less<>> by_name;
  std::map<NodeKind, const OpDef*> by_kind;          // those that were asked for
  std::atomic<const OpRegistration*> seen{nullptr};  // everything from here on is in by_name
  // By registration id, read without a lock on every eager call.
  std::array<std::atomic<const OpDef*>, kMaxOps> by_id{};
};

OpRegistry::OpRegistry() : state_(std::make_unique<State>()) { refresh(); }
OpRegistry::~OpRegistry() = default;

void OpRegistry::refresh() const {
  std::unique_lock lock(state_->mutex);
  const OpRegistration* newest = OpRegistration::newest();
  // All are read and checked before the first is entered, so that a failure leaves the registry as
  // it was.
  std::map<std::string, std::shared_ptr<OpDef>, std::less<>> added;
  for (const OpRegistration* r = newest; r != state_->seen; r = r->next()) {
    auto op = std::make_shared<OpDef>(OpDef::parse(r->decl(), r->id()));
    if (r->id() >= kMaxOps)
      throw ResourceExhaustedError(cat("More than ", kMaxOps, " ops are registered."));
    if (state_->by_name.contains(op->name) || !added.try_emplace(op->name, std::move(op)).second) {
      throw AlreadyExistsError(
          cat("Op ", r->decl().name,
              " is declared twice. Rename one, or link only one of the two libraries."));
    }
  }
  for (const auto& [name, op] : added)
    state_->by_id[op->id].store(op.get(), std::memory_order_release);
  state_->by_name.merge(added);
  state_->seen = newest;
}

const OpDef* OpRegistry::find(std::string_view name) const {
  const auto look = [&]() -> const OpDef* {
    std::shared_lock lock(state_->mutex);
    const auto it = state_->by_name.find(name);
    return it == state_->by_name.end() ? nullptr : it->second.get();
  };
  const OpDef* op = look();
  if (!op && OpRegistration::newest() != state_->seen) {
    refresh();
    op = look();
  }
  return op;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  if (const OpDef* op = find(name)) return *op;
  std::vector<std::string> names;
  for (const OpDef* op : all()) names.push_back(op->name);
  const std::string near = nearest_name(name, names);
  throw NotFoundError(cat("There is no op '", name, "'.",
                          near.empty() ? "" : " Did you mean '" + near + "'?",
                          " `td ops` lists all of them."));
}

const OpDef& OpRegistry::get(const OpRegistration& op) const {
  if (op.id() < kMaxOps) {
    if (const OpDef* def = state_->by_id[op.id()].load(std::memory_order_acquire)) return *def;
  }
  return get(op.decl().name);
}

const OpDef& OpRegistry::of_kind(NodeKind kind) const {
  {
    std::shared_lock lock(state_->mutex);
    const auto known = state_->by_kind.find(kind);
    if (known != state_->by_kind.end()) return *known->second;
  }
  std::unique_lock lock(state_->mutex);
  for (const auto& [name, op] : state_->by_name) {
    if (op->traits.kind != kind) continue;
    state_->by_kind.emplace(kind, op.get());
    return *op;
  }
  throw InternalError(cat("no op of node kind ", static_cast<int>(kind), " is registered"));
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::shared_lock lock(state_->mutex);
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : state_->by_name) ops.push_back(op.get());
  return ops;
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view wanted, const std::vector<std::string>& names) {
  std::string best;
  // Where as many letters change as there are, nothing of the name is left.
  std::size_t best_distance =
      std::min(std::max<std::size_t>(2, wanted.size() / 3) + 1, wanted.size());
  for (const std::string& name : names) {
    const std::size_t d = edit_distance(wanted, name);
    if (d < best_distance) {
      best_distance = d;
      best = name;
    }
  }
  return best;
}

}  // namespace tandem
