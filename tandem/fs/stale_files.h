#pragma once

#include <string>

#include "tandem/core/export.h"

namespace tandem::fs {

/// A name beside `path` for what shall get that name when it is complete: it holds the machine, the
/// process and a number, "model.3f2a9c01.4711.0.tmp".
TANDEM_EXPORT std::string unfinished_name(const std::string& path);

/// Removes what writers of `path`, or of the file it is a symbolic link to, left under such names
/// (a file, or a folder of files) and will not finish: their process is gone from this machine, as
/// it is known since it was started, or nothing of it was written for a day. So writers on other
/// machines that share a disk are left alone, and so are those in other containers. Never throws;
/// what cannot be removed stays. Does nothing where `path` is not of the local file system.
TANDEM_EXPORT void remove_stale_files(const std::string& path) noexcept;

}  // namespace tandem::fs
