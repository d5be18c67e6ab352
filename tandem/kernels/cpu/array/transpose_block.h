#pragma once

#include <cstdint>

namespace tandem::cpu {

/// to[r * to_row + c] = from[c * from_column + r] for all r < rows and c < columns, fetching each
/// cache line of either side once. The sides do not overlap.
void transpose_block(std::uint8_t* to, std::int64_t to_row, const std::uint8_t* from,
                     std::int64_t from_column, std::int64_t rows, std::int64_t columns);
void transpose_block(std::uint16_t* to, std::int64_t to_row, const std::uint16_t* from,
                     std::int64_t from_column, std::int64_t rows, std::int64_t columns);
void transpose_block(std::uint32_t* to, std::int64_t to_row, const std::uint32_t* from,
                     std::int64_t from_column, std::int64_t rows, std::int64_t columns);
void transpose_block(std::uint64_t* to, std::int64_t to_row, const std::uint64_t* from,
                     std::int64_t from_column, std::int64_t rows, std::int64_t columns);

}  // namespace tandem::cpu
