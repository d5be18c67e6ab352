#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "tandem/distribute/internal/rpc/rpc.h"

namespace tandem::distribute {

/// Methods by name. `add` before the first call. What a method throws becomes the call's status.
class MethodTable final : public Service {
 public:
  using Method = std::function<void(Bytes request, const CallContext& context, ReplyDone done)>;

  void add(std::string name, Method method) {
    methods_.emplace(std::move(name), std::move(method));
  }
  void call(std::string_view method, Bytes request, const CallContext& context,
            ReplyDone done) override;

 private:
  std::unordered_map<std::string, Method> methods_;
};

}  // namespace tandem::distribute
