#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tandem/core/thread_annotations.h"
#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Methods by name. `add` before the first call. What a method throws becomes the call's status.
class MethodTable final : public Service {
 public:
  using Method = std::function<void(Bytes request, const CallContext& context, ReplyDone done)>;

  void add(std::string name, Method method) {
    methods_.emplace(std::move(name), std::move(method));
  }
  /// A method whose calls are streams.
  void add_stream(std::string name, Method method) {
    streams_.insert(name);
    add(std::move(name), std::move(method));
  }
  void call(std::string_view method, Bytes request, const CallContext& context,
            ReplyDone done) override;
  std::vector<std::string> unary_methods() const override;
  /// How often methods were called that there are not; the first names alone.
  std::map<std::string, std::int64_t> unknown_calls() const;
  bool is_stream(std::string_view method) const override {
    return streams_.find(method) != streams_.end();
  }

 private:
  std::unordered_map<std::string, Method> methods_;
  std::set<std::string, std::less<>> streams_;
  mutable Mutex mutex_;
  std::map<std::string, std::int64_t> unknown_calls_ TANDEM_GUARDED_BY(mutex_);
};

}  // namespace tandem::distribute
