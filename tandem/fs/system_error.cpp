#include "tandem/fs/internal/system_error.h"

#include <cerrno>
#include <system_error>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

Code code_of_errno(int error) {
  switch (error) {
    case ENOENT: return Code::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::kPermissionDenied;
    case EEXIST: return Code::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::kResourceExhausted;
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY: return Code::kFailedPrecondition;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP: return Code::kInvalidArgument;
    case EIO: return Code::kDataLoss;
    default: return Code::kUnknown;
  }
}

}  // namespace

void throw_system_error(int error, const std::string& path) {
  throw_error(code_of_errno(error),
              cat(path.empty() ? "(no path)" : path, "; ", std::generic_category().message(error)));
}

}  // namespace tandem::fs
