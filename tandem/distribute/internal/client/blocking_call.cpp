#include "tandem/distribute/internal/client/blocking_call.h"

#include <utility>

namespace tandem::distribute {

Bytes blocking_call(Channel& channel, const char* method, Bytes request,
                    const CallOptions& options) {
  auto [status, reply] = channel.call_and_wait(method, std::move(request), options);
  if (!status.ok()) std::rethrow_exception(status.error());
  return std::move(reply);
}

std::string address_of_target(const std::string& target) {
  constexpr std::string_view kScheme = "grpc://";
  return target.starts_with(kScheme) ? target.substr(kScheme.size()) : target;
}

}  // namespace tandem::distribute
