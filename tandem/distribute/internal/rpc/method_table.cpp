#include "tandem/distribute/internal/rpc/method_table.h"

#include <exception>

namespace tandem::distribute {

std::exception_ptr Status::error() const {
  try {
    throw_error(code, message);
  } catch (...) {
    return std::current_exception();
  }
}

void MethodTable::call(std::string_view method, Bytes request, const CallContext& context,
                       ReplyDone done) {
  const auto found = methods_.find(std::string(method));
  if (found == methods_.end()) return done({.code = Code::kUnimplemented}, {});
  try {
    found->second(std::move(request), context, done);
  } catch (...) {
    done(Status::of(std::current_exception()), {});
  }
}

}  // namespace tandem::distribute
