#pragma once

/// What this is compiled with, as g++ and clang say it: TANDEM_THREAD_SANITIZER and
/// TANDEM_ADDRESS_SANITIZER are 1 or 0.
#if defined(__has_feature)
#define TANDEM_HAS_FEATURE(feature) __has_feature(feature)
#else
#define TANDEM_HAS_FEATURE(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || TANDEM_HAS_FEATURE(thread_sanitizer)
#define TANDEM_THREAD_SANITIZER 1
#else
#define TANDEM_THREAD_SANITIZER 0
#endif
#if defined(__SANITIZE_ADDRESS__) || TANDEM_HAS_FEATURE(address_sanitizer)
#define TANDEM_ADDRESS_SANITIZER 1
#else
#define TANDEM_ADDRESS_SANITIZER 0
#endif
