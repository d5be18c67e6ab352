#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::keras::internal {

/// A file below one of the class folders of a directory.
struct IndexedFile {
  std::string path;
  std::int32_t label = 0;  ///< the number of its folder
};

/// The folders in `directory` whose names do not begin with ".", sorted.
std::vector<std::string> class_folders(const std::string& directory);

/// The files with one of these endings (in lower case) below each of `folders` in `directory`, or
/// below `directory` itself where a folder's name is empty: by folder, then by the path of the
/// folder they lie in, then by name. Folders that cannot be read are passed over, as Python's
/// os.walk does, but the class folders themselves must be readable.
std::vector<IndexedFile> index_files(const std::string& directory,
                                     const std::vector<std::string>& folders,
                                     std::span<const std::string_view> endings, bool follow_links);

/// The permutation of NumPy's RandomState(seed).shuffle for a list of `count` items.
std::vector<std::size_t> numpy_shuffle(std::size_t count, std::uint32_t seed);

}  // namespace tandem::keras::internal
