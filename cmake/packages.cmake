# `cmake --build build/release --target package` makes Debian packages in build/release/packages, for the
# release of Debian that it runs on: the names and versions of the libraries are in their dependencies.
#
# The paths of packages are fixed: maintainer scripts and dpkg's list of configuration files have them.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  return()
endif()

set(RMEMFS_PACKAGE_MAINTAINER "the rmemfs authors <rmemfs@packages.invalid>" CACHE STRING
  "Who made the packages: a name and an address of mail")

# 0.1.0-1~deb12: an upgrade of Debian replaces the packages for the release before.
cmake_host_system_information(RESULT system QUERY DISTRIB_INFO)
string(REPLACE "debian" "deb" system_id "${system_ID}")
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~${system_id}${system_VERSION_ID}")
set(debian_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rmemfs)
set(CPACK_PACKAGE_CONTACT "${RMEMFS_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
# CPack would put it before the synopsis of each package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
# debian.cmake makes the symbols. CPack's own packages of symbols (CPACK_DEBIAN_DEBUGINFO_PACKAGE) have no
# copyright, and wrong paths in their sums.
set(CPACK_COMPONENTS_ALL client server doc symbols)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian.cmake)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE rmemfs)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

# package COMPONENT NAME SECTION SYNOPSIS DESCRIPTION: packaging/debian has the other control files.
function(package component name section synopsis description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${description}" PARENT_SCOPE)
  file(GLOB control CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/packaging/debian/${name}/conffiles
    ${CMAKE_SOURCE_DIR}/packaging/debian/${name}/p*inst
    ${CMAKE_SOURCE_DIR}/packaging/debian/${name}/p*rm)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)
endfunction()

package(client rmemfs admin "filesystem in another machine's memory: mounts and tools"
"rmemfs mounts the memory of another machine as a filesystem. The bytes of
files travel by one-sided RDMA, over InfiniBand or RoCE, or over TCP.
.
This package has the daemon that mounts, the helper of mount(8) for fstab, a
unit for mounts as services, and rmemfsctl, which asks servers for their state
and makes keys.")
package(server rmemfs-server admin "filesystem in another machine's memory: server"
"rmemfs-server lends the memory of its machine to clients, which mount it as a
filesystem. The bytes of files travel by one-sided RDMA, over InfiniBand or
RoCE, or over TCP.
.
The files are in memory: they are lost when the machine goes down, unless the
server writes snapshots to a disk.")
package(doc rmemfs-doc doc "filesystem in another machine's memory: documentation"
"The architecture, the measured performance, and how to set up, tune and
change rmemfs, which mounts the memory of another machine as a filesystem.")
package(symbols rmemfs-dbg debug "filesystem in another machine's memory: symbols"
"gdb and systemd-coredump find symbols of rmemfs, rmemfs-server and rmemfsctl in
this package. It has to be of the same version as the programs.")

# The server needs rmemfsctl, to reload and to make keys. It takes the whole package of clients: a mount on the
# server's own machine has to be of the same release, and a package for rmemfsctl alone would spare 300 kB.
# Users without rights mount by fusermount3.
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS fuse3)
set(CPACK_DEBIAN_CLIENT_PACKAGE_RECOMMENDS ibverbs-providers)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SUGGESTS "rdma-core, rmemfs-doc")
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS
  "rmemfs (= ${debian_version}), systemd | systemd-standalone-sysusers | systemd-sysusers")
set(CPACK_DEBIAN_SERVER_PACKAGE_RECOMMENDS ibverbs-providers)
set(CPACK_DEBIAN_SERVER_PACKAGE_SUGGESTS "rdma-core, rmemfs-doc")
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SYMBOLS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_SYMBOLS_PACKAGE_DEPENDS "rmemfs (= ${debian_version})")

# CPack hands these to debian.cmake.
set(CPACK_RMEMFS_OBJCOPY ${CMAKE_OBJCOPY})
set(CPACK_RMEMFS_READELF ${CMAKE_READELF})
set(CPACK_RMEMFS_STRIP ${CMAKE_STRIP})
set(CPACK_RMEMFS_SOURCE_DIR ${CMAKE_SOURCE_DIR})
set(CPACK_RMEMFS_DEBIAN_VERSION ${debian_version})
set(CPACK_RMEMFS_DEBIAN_CODENAME ${system_VERSION_CODENAME})
include(CPack)
