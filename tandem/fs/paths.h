#pragma once

#include <string>
#include <string_view>

#include "tandem/core/export.h"

namespace tandem::fs {

/// The scheme of a path: "s3" of "s3://bucket/key", empty for a plain path.
TANDEM_EXPORT std::string_view scheme_of(std::string_view path);

/// Whether the path is one of this machine's files: it is plain or begins with "file://".
TANDEM_EXPORT bool is_local(std::string_view path);

/// A local path without "file://"; other paths as they are.
TANDEM_EXPORT std::string without_file_scheme(std::string_view path);

/// The folder of a path, without a slash at its end: "s3://bucket/a" of "s3://bucket/a/b". Empty
/// where there is none: for "b", and for "s3://bucket", the root of a store.
TANDEM_EXPORT std::string parent_path(std::string_view path);

/// What follows the last slash.
TANDEM_EXPORT std::string_view base_name(std::string_view path);

/// "folder/name", with one slash between them; `name` alone where `folder` is empty.
TANDEM_EXPORT std::string join_path(std::string_view folder, std::string_view name);

}  // namespace tandem::fs
