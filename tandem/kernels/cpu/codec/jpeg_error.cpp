#include "tandem/kernels/cpu/codec/jpeg_error.h"

namespace tandem::cpu {
namespace {

// `manager` is the first member.
JpegErrors& errors_of(j_common_ptr info) { return *reinterpret_cast<JpegErrors*>(info->err); }

[[noreturn]] void leave(j_common_ptr info) {
  JpegErrors& errors = errors_of(info);
  (*info->err->format_message)(info, errors.message);
  std::longjmp(errors.jump, 1);
}

void count(j_common_ptr info, int level) {
  if (level < 0) ++info->err->num_warnings;
}

void stay_silent(j_common_ptr) {}

}  // namespace

jpeg_error_mgr* JpegErrors::begin() {
  jpeg_std_error(&manager);
  manager.error_exit = leave;
  manager.emit_message = count;
  manager.output_message = stay_silent;
  return &manager;
}

}  // namespace tandem::cpu
