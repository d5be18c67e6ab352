#pragma once

#include <cstddef>
#include <string>

namespace tandem {

/// "512 MiB", "1.27 GiB", "300 B".
std::string byte_text(std::size_t bytes);

/// "12 GB/s", "1.5 MB/s": powers of 1000.
std::string rate_text(double bytes_per_second);

}  // namespace tandem
