#pragma once

/// Marks what leaves libtandem.so; everything else is compiled with hidden visibility.
#define TANDEM_EXPORT __attribute__((visibility("default")))
