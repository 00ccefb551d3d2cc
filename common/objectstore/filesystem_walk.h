// SPDX-License-Identifier: Apache-2.0
// Lists the keys below a FilesystemObjectStore's root in the order of their bytes.
#pragma once

#include <string>
#include <string_view>

#include "common/objectstore/file_system.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

// As ObjectStore::List. Reads only the folders that can hold such keys; a folder or file that
// vanishes meanwhile is left out; a root that is not there is an empty store.
Result<ObjectList> ListFolder(FileSystem& files, const std::string& root, std::string_view prefix,
                              std::string_view start_after, int limit);

}  // namespace lambdadnn
