#pragma once

// jpeglib.h needs size_t and FILE.
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

namespace tandem::cpu {

/// How the JPEG library reports: by a jump to `jump`, which a function without destructors has set,
/// with the reason in `message`. Nothing is printed.
struct JpegErrors {
  jpeg_error_mgr manager;
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";

  /// To be called before the library's object is made.
  jpeg_error_mgr* begin();
};

}  // namespace tandem::cpu
