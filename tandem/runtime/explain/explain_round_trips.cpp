#include <algorithm>
#include <map>
#include <numeric>

#include "tandem/core/error.h"
#include "tandem/runtime/explain/explainer.h"

namespace tandem {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

// Ops that hand values to each other within one memory belong together.
class Regions {
 public:
  explicit Regions(std::size_t ops) : parent_(ops) { std::iota(parent_.begin(), parent_.end(), 0); }
  int of(int op) {
    while (parent_[index(op)] != op) op = parent_[index(op)] = parent_[index(parent_[index(op)])];
    return op;
  }
  void join(int a, int b) { parent_[index(of(a))] = of(b); }

 private:
  std::vector<int> parent_;
};

std::string names(const Explanation& out, const std::vector<int>& ops) {
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < ops.size() && i < kNamed; ++i) {
    const Explanation::Op& op = out.ops[index(ops[i])];
    text += cat(i ? ", " : "", op.name, " (", op.op, ")");
  }
  if (ops.size() > kNamed) text += cat(" and ", ops.size() - kNamed, " more");
  return text;
}

}  // namespace

void explain_round_trips(const ExplainedGraph& g, Explanation& out) {
  const DeviceSet& devices = g.placement.devices;
  const auto memory = [&](int op) { return devices.memory_of(out.ops[index(op)].device); };
  const auto works = [&](int op) {
    const NodeKind kind = g.order[index(op)]->kind();
    return kind != NodeKind::kConst && kind != NodeKind::kArg;
  };
  Regions regions(out.ops.size());
  for (int op = 0; op < static_cast<int>(out.ops.size()); ++op) {
    for (const int in : out.ops[index(op)].inputs) {
      if (works(op) && works(in) && memory(in) == memory(op)) regions.join(in, op);
    }
  }
  struct Stay {
    std::vector<int> there, back, ops;
  };
  std::map<int, Stay> stays;
  for (int c = 0; c < static_cast<int>(out.copies.size()); ++c) {
    const Explanation::Copy& copy = out.copies[index(c)];
    if (works(copy.maker) && memory(copy.maker) == copy.from)
      stays[regions.of(copy.maker)].back.push_back(c);
    std::vector<int> seen;
    for (const int user : copy.users) {
      const int region = regions.of(user);
      if (!works(user) || memory(user) != copy.to ||
          std::find(seen.begin(), seen.end(), region) != seen.end())
        continue;
      seen.push_back(region);
      stays[region].there.push_back(c);
    }
  }
  for (int op = 0; op < static_cast<int>(out.ops.size()); ++op) {
    const auto found = works(op) ? stays.find(regions.of(op)) : stays.end();
    if (found != stays.end()) found->second.ops.push_back(op);
  }
  for (auto& [region, stay] : stays) {
    Explanation::RoundTrip found;
    const auto from = [&](int c) { return out.copies[index(c)].from; };
    const auto to = [&](int c) { return out.copies[index(c)].to; };
    // Only what comes from where it goes back to, and was not there at the beginning anyway. Of
    // several such places, the one that most goes to and comes from.
    std::map<int, double> homes;
    for (const int c : stay.there) {
      if (works(out.copies[index(c)].maker)) homes[from(c)] += out.copies[index(c)].bytes;
    }
    int home = -1;
    for (const auto& [place, bytes] : homes) {
      const bool returns = std::any_of(stay.back.begin(), stay.back.end(),
                                       [&, p = place](int c) { return to(c) == p; });
      if (returns && (home < 0 || bytes > homes[home])) home = place;
    }
    std::copy_if(stay.there.begin(), stay.there.end(), std::back_inserter(found.there),
                 [&](int c) { return from(c) == home && works(out.copies[index(c)].maker); });
    std::copy_if(stay.back.begin(), stay.back.end(), std::back_inserter(found.back),
                 [&](int c) { return to(c) == home; });
    if (found.there.empty() || found.back.empty()) continue;
    for (const int op : stay.ops) found.work_seconds += out.ops[index(op)].seconds;
    for (const std::vector<int>& way : {found.there, found.back}) {
      for (const int c : way) {
        found.copy_seconds += out.copies[index(c)].seconds;
        found.bytes += out.copies[index(c)].bytes;
      }
    }
    if (found.work_seconds >= found.copy_seconds) continue;
    std::vector<int> users;  // of what comes
    for (const int op : stay.ops) {
      if (std::any_of(found.there.begin(), found.there.end(), [&](int c) {
            const auto& readers = out.copies[index(c)].users;
            return std::find(readers.begin(), readers.end(), op) != readers.end();
          }))
        users.push_back(op);
    }
    found.ops = std::move(stay.ops);
    found.at = out.ops[index(found.ops.front())].device;
    const Explanation::Copy& first = out.copies[index(found.there.front())];
    const Explanation::Copy& last = out.copies[index(found.back.front())];
    found.text = cat(
        first.value, found.there.size() > 1 ? cat(" and ", found.there.size() - 1, " more") : "",
        found.there.size() > 1 ? " go" : " goes", " from ",
        out.devices[index(first.from)].short_name, " to ", out.devices[index(found.at)].short_name,
        " for ", names(out, users), ", and ", last.value,
        found.back.size() > 1 ? cat(" and ", found.back.size() - 1, " more") : "",
        found.back.size() > 1 ? " come" : " comes", " back: ", seconds_text(found.copy_seconds),
        " of copying ", bytes_text(found.bytes), " for ", seconds_text(found.work_seconds),
        " of work");
    out.back_and_forth.push_back(std::move(found));
  }
  std::stable_sort(out.back_and_forth.begin(), out.back_and_forth.end(),
                   [](const auto& a, const auto& b) { return a.copy_seconds > b.copy_seconds; });
}

}  // namespace tandem
