#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tandem::io {

/// Writes a table of LevelDB's form, as the index of a checkpoint is: keys in the order of their
/// bytes, uncompressed, blocks of 256 KiB.
std::string write_table(const std::map<std::string, std::string>& entries);

/// Calls `entry` for each entry in the order of the keys. Throws DataLossError, before any call, if
/// the bytes are no such table or are damaged, and UnimplementedError if it is compressed. What is
/// handed out is bounded by the size of the table, whatever lengths the table announces.
void read_table(std::string_view bytes,
                const std::function<void(std::string_view key, std::string_view value)>& entry);

}  // namespace tandem::io
