# `cmake --build build/release --target package` makes packages in build/release/packages, for the system that it
# runs on: the names and versions of the libraries are in their dependencies. Where the tools for both kinds are
# there, it makes both.
#
# The paths of packages are fixed: their scripts and lists of configuration files have them.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  return()
endif()

set(RMEMFS_PACKAGE_MAINTAINER "the rmemfs authors <rmemfs@packages.invalid>" CACHE STRING
  "Who made the packages: a name and an address of mail")

find_program(RMEMFS_DPKG_SHLIBDEPS dpkg-shlibdeps)
find_program(RMEMFS_RPMBUILD rpmbuild)
mark_as_advanced(RMEMFS_DPKG_SHLIBDEPS RMEMFS_RPMBUILD)
set(CPACK_GENERATOR "")
if(RMEMFS_DPKG_SHLIBDEPS OR NOT RMEMFS_RPMBUILD)
  list(APPEND CPACK_GENERATOR DEB)
endif()
if(RMEMFS_RPMBUILD)
  list(APPEND CPACK_GENERATOR RPM)
endif()

set(CPACK_PACKAGE_NAME rmemfs)
set(CPACK_PACKAGE_CONTACT "${RMEMFS_PACKAGE_MAINTAINER}")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_RELOCATABLE OFF)
# CPack would put it before the synopsis of each package.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
# package_files.cmake makes the symbols. CPack's own packages of symbols have no copyright, and wrong paths in
# their sums.
set(CPACK_COMPONENTS_ALL client server doc symbols)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package_files.cmake)

# part FILE OUT: the file's text, without the comment at its beginning.
function(part file out)
  file(READ ${CMAKE_SOURCE_DIR}/packaging/${file} text)
  string(REGEX REPLACE "^(#[^\n]*\n)+\n" "" text "${text}")
  string(STRIP "${text}" text)
  set(${out} "${text}" PARENT_SCOPE)
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/packaging/${file})
endfunction()
part(restart_server.sh RESTART_SERVER)
part(name_files.sh NAME_FILES)
part(name_mounts.sh NAME_MOUNTS)
part(begin.sh BEGIN)

# package_script KIND NAME SCRIPT OUT: the script, with the parts that it has in common with others; empty: the
# package has no such script.
function(package_script kind name script out)
  set(file packaging/${kind}/${name}/${script})
  set(${out} "" PARENT_SCOPE)
  if(EXISTS ${CMAKE_SOURCE_DIR}/${file})
    configure_file(${file} ${CMAKE_BINARY_DIR}/${file} @ONLY NEWLINE_STYLE UNIX)
    set(${out} ${CMAKE_BINARY_DIR}/${file} PARENT_SCOPE)
  endif()
endfunction()

# package COMPONENT NAME SECTION SYNOPSIS DESCRIPTION: packaging/ has the scripts.
function(package component name section synopsis description)
  string(TOUPPER ${component} upper)
  set(control "")
  foreach(script conffiles postinst prerm postrm)
    package_script(debian ${name} ${script} file)
    list(APPEND control ${file})
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${synopsis}\n${description}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA "${control}" PARENT_SCOPE)

  string(REGEX REPLACE "-dbg$" "-debuginfo" name ${name})
  string(REPLACE "\n.\n" "\n\n" description "${description}")
  set(CPACK_RPM_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_SUMMARY "${synopsis}" PARENT_SCOPE)
  set(CPACK_RPM_${upper}_PACKAGE_DESCRIPTION "${description}" PARENT_SCOPE)
  package_script(rpm ${name} post file)
  set(CPACK_RPM_${upper}_POST_INSTALL_SCRIPT_FILE "${file}" PARENT_SCOPE)
  package_script(rpm ${name} preun file)
  set(CPACK_RPM_${upper}_PRE_UNINSTALL_SCRIPT_FILE "${file}" PARENT_SCOPE)
  package_script(rpm ${name} postun file)
  set(CPACK_RPM_${upper}_POST_UNINSTALL_SCRIPT_FILE "${file}" PARENT_SCOPE)
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

# ---- Debian --------------------------------------------------------------------------------------

# 0.1.0-1~deb12: an upgrade of Debian replaces the packages for the release before.
cmake_host_system_information(RESULT system QUERY DISTRIB_INFO)
string(REPLACE "debian" "deb" system_id "${system_ID}")
set(CPACK_DEBIAN_PACKAGE_RELEASE "1~${system_id}${system_VERSION_ID}")
set(debian_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE rmemfs)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)

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

# ---- RPM -----------------------------------------------------------------------------------------

set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE BSD-2-Clause)
set(CPACK_RPM_COMPRESSION_TYPE xz)
# The programs are stripped, and the pages compressed, when rpmbuild sees them.
set(CPACK_RPM_SPEC_INSTALL_POST ":")
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none")
# Folders of other packages.
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/sbin /usr/lib/debug /usr/lib/debug/.build-id
  /usr/lib/modules-load.d
  /usr/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d /usr/lib/tmpfiles.d
  /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh /usr/share/zsh/${zsh_folder}
  /usr/share/licenses /usr/share/man /usr/share/man/man5 /usr/share/man/man7 /usr/share/man/man8)
set(CPACK_RPM_CLIENT_USER_FILELIST "%config(noreplace) /etc/rmemfs/client.conf"
  "%license /usr/share/licenses/rmemfs/LICENSE")
set(CPACK_RPM_SERVER_USER_FILELIST "%config(noreplace) /etc/rmemfs/server.conf")
set(CPACK_RPM_CLIENT_PACKAGE_REQUIRES fuse3)
set(CPACK_RPM_SERVER_PACKAGE_REQUIRES "rmemfs = ${PROJECT_VERSION}-${CPACK_RPM_PACKAGE_RELEASE}, systemd")
set(CPACK_RPM_DOC_PACKAGE_ARCHITECTURE noarch)
set(CPACK_RPM_SYMBOLS_PACKAGE_REQUIRES "rmemfs = ${PROJECT_VERSION}-${CPACK_RPM_PACKAGE_RELEASE}")
set(CPACK_RPM_SYMBOLS_PACKAGE_AUTOREQ no)

# CPack hands these to package_files.cmake.
set(CPACK_RMEMFS_OBJCOPY ${CMAKE_OBJCOPY})
set(CPACK_RMEMFS_READELF ${CMAKE_READELF})
set(CPACK_RMEMFS_STRIP ${CMAKE_STRIP})
set(CPACK_RMEMFS_SOURCE_DIR ${CMAKE_SOURCE_DIR})
set(CPACK_RMEMFS_DEBIAN_VERSION ${debian_version})
set(CPACK_RMEMFS_DEBIAN_CODENAME ${system_VERSION_CODENAME})
include(CPack)
